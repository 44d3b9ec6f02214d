"""A query of the user's own, as everything behind the trigger knows it. Values only."""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple


class Origin(NamedTuple):
    """A selector in a query of the user's own, as PromQL."""

    selector: str
    reach_seconds: float
    """How far back the query looks from it: the ranges around it, added up."""


@dataclass(frozen=True, slots=True)
class OwnQuery:
    """A user's own PromQL, as it is sent: one element for each GPU or pod."""

    text: str
    origins: tuple[Origin, ...]
    """What its numbers are made of: as old as the oldest of them is the answer."""
    faithful: bool
    """Every series it reads shows as an element: a missing one says that its pod may be gone."""

    @property
    def name(self) -> str:
        """A short name in place of the text, for metrics and logs."""
        return f"query-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"

    @property
    def reach_seconds(self) -> float:
        """How old what is behind a number can be already when it is new."""
        return max(origin.reach_seconds for origin in self.origins)
