"""Figures → ratios. Pure.

Two runs one after the other saw the same machine, more or less, so a ratio is taken between
neighbours; the median of the rounds' ratios is the result, and their range says how far to trust
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Ratio:
    """One quantity next to another, over several rounds."""

    median: float
    lowest: float
    highest: float


def ratio(measured: Sequence[float], reference: Sequence[float]) -> Ratio:
    """Compare two series of rounds, round by round.

    Args:
        measured: one figure per round.
        reference: what it is compared with, in the same rounds.
    """
    rounds = [one / other for one, other in zip(measured, reference, strict=True)]
    return Ratio(median(rounds), min(rounds), max(rounds))
