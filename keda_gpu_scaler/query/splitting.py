"""Queries about many names, which are sent in parts where a server takes no long texts. Pure."""

import abc
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class SplittableQuery(abc.ABC):
    """A query about names; the answer is the sum of the answers about parts of them."""

    names: frozenset[str]
    """Of namespaces, or of GPUs."""

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """The text in the server's language."""

    def texts(self, longest_bytes: float) -> Iterator[str]:
        """Yield one text for all names, or several for parts of them; one name is never split."""
        text = self.text
        if len(self.names) > 1 and len(text.encode()) > longest_bytes:
            ordered = sorted(self.names)
            middle = len(ordered) // 2
            for part in (ordered[:middle], ordered[middle:]):
                yield from replace(self, names=frozenset(part)).texts(longest_bytes)
        else:
            yield text
