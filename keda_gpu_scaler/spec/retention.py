"""How long is kept what is known of a trigger that is not asked about any more, and how much.

KEDA asks about a trigger every 30 s by default, and every few minutes at most. What was not asked
about for ten minutes was deleted, or is as good as new when it is asked about again.
"""

import dataclasses
import sys

FORGET_SECONDS = 600.0
TRIGGERS = 20_000
"""More than one KEDA can poll."""


def deep_size(value: object) -> int:
    """Return the bytes of a value and of all that it consists of.

    What is shared with other values counts as well: the result is rather too large.
    """
    size = sys.getsizeof(value)
    if isinstance(value, tuple | frozenset):
        return size + sum(map(deep_size, value))
    if dataclasses.is_dataclass(value):
        fields = (getattr(value, field.name) for field in dataclasses.fields(value))
        return size + sum(map(deep_size, fields))
    return size
