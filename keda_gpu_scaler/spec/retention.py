"""How long is kept what is known of a trigger that is not asked about any more, and how much.

KEDA asks about a trigger every 30 s by default, and every few minutes at most. What was not asked
about for ten minutes was deleted, or is as good as new when it is asked about again.
"""

FORGET_SECONDS = 600.0
TRIGGERS = 20_000
"""More than one KEDA can poll."""
