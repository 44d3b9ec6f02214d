"""How many triggers a process tracks, for how long, and the memory that one of them takes."""

import sys
from dataclasses import fields, is_dataclass

FORGET_SECONDS = 600.0
"""What is known of a trigger is kept for so long after it was asked about.

KEDA asks every 30 s by default, and every few minutes at most. What was not asked about for longer
was deleted, or is as good as new when it is asked about again.
"""
TRIGGERS = 20_000
"""More than one KEDA can poll."""


def deep_size(value: object) -> int:
    """Return the bytes of a value and of all that it consists of.

    What is shared with other values counts as well: the result is rather too large.
    """
    size = sys.getsizeof(value)
    if isinstance(value, tuple | frozenset):
        return size + sum(map(deep_size, value))
    if is_dataclass(value):
        return size + sum(deep_size(getattr(value, part.name)) for part in fields(value))
    return size
