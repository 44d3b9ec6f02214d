"""How much memory a value takes, for caches that are bounded in bytes. Pure."""

import dataclasses
import sys


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
