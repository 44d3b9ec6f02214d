"""Pods that share a GPU and take turns on its one series: there all the time, seen now and then.

Pure. Without its virtual mode dcgm-exporter has room for one pod per GPU: of several on a
time-sliced one, whichever it happens to read last (dcgm-exporter issues 307, 340). Each scrape
then seems to end a pod and to begin another one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from keda_gpu_scaler.observation import Series, Target

GAPS = 2
"""A pod that was replaced by one of its own name leaves one gap; two are taken for turns."""

TURNS_SECONDS = 300.0
"""Turns are taken at every other scrape; what is older is a pod that was replaced now and then."""

_Holders = Mapping[tuple[Target, str], Sequence[frozenset[float]]]


def steadied(
    series: Iterable[Series], good_scrapes: Mapping[Target, Mapping[float, float]]
) -> tuple[Series, ...]:
    """Return the series with those that take turns there at every good scrape of late.

    At the instants in between nothing is known of the pod's load: it is there, without a value.
    It takes until its turns are forgotten to believe that such a pod has ended.
    """
    found = tuple(series)
    good = {target: _of_late(scrapes) for target, scrapes in good_scrapes.items()}
    gaps = [_gaps(one, good.get(one.target, ())) for one in found]
    if not any(gaps):
        return found
    holders = _holders(found)
    return tuple(
        replace(one, present=_since_first(one, good[one.target]))
        if _takes_turns(one, missed, holders)
        else one
        for one, missed in zip(found, gaps, strict=True)
    )


def _of_late(scrapes: Iterable[float]) -> list[float]:
    instants = sorted(scrapes)
    return [at for at in instants if at > instants[-1] - TURNS_SECONDS]


def _gaps(one: Series, good: Sequence[float]) -> list[set[float]]:
    """Return the runs of good scrapes between its first and its last that lacked the series."""
    present, gaps, gap = frozenset(one.present), [], set[float]()
    for instant in good:
        if instant not in present:
            gap.add(instant)
            continue
        if gap and min(gap) > one.present[0]:
            gaps.append(gap)
        gap = set()
    return gaps


def _takes_turns(one: Series, gaps: list[set[float]], holders: _Holders) -> bool:
    """Tell whether it came back twice, or once from a gap that another pod had filled."""
    present, missed = frozenset(one.present), set[float]().union(*gaps)
    others = (other for other in holders[one.target, one.gpu] if not present & other)
    return len(gaps) >= GAPS or any(missed & other for other in others)


def _holders(series: Iterable[Series]) -> _Holders:
    held: dict[tuple[Target, str], list[frozenset[float]]] = defaultdict(list)
    for one in series:
        held[one.target, one.gpu].append(frozenset(one.present))
    return held


def _since_first(one: Series, good: Sequence[float]) -> tuple[float, ...]:
    return tuple(sorted({*one.present, *(at for at in good if at > one.present[0])}))
