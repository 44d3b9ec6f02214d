"""How many triggers a process tracks, and for how long: in decisions, metrics and the log."""

FORGET_SECONDS = 600.0
"""What is known of a trigger is kept for so long after it was asked about.

KEDA asks every 30 s by default, and every few minutes at most. What was not asked about for longer
was deleted, or is as good as new when it is asked about again.
"""
TRIGGERS = 20_000
"""More than one KEDA can poll."""
