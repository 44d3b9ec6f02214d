"""The answers to custom PromQL queries: their elements as series of GPUs, and their ages. Pure.

An element names its pod by the pod labels of any known exporter; its other labels tell the GPUs of
one pod apart. An element that names no pod counts for no workload.
"""

from collections.abc import Collection, Iterable

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.snapshot.evidence import PodKey
from keda_gpu_scaler.snapshot.observation import Row, Series
from keda_gpu_scaler.sources.series import known_age, target_of

_LARGEST = 2.0**53
_POD_LABELS = frozenset({*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS})


def oldest_age(rows: Iterable[Row], pods: Iterable[PodKey]) -> dict[PodKey, float]:
    """Return the ages of pods: each is as old as the oldest sample behind its numbers.

    A row that names no pod is about all `pods`, which the query shows.
    """
    ages: dict[PodKey | None, float] = {}
    for row in rows:
        pod, age = profiles.pod_of(row.labels), known_age(row.points[-1][1])
        ages[pod] = max(age, ages.get(pod, age))
    age_of_all = ages.pop(None, 0.0)
    shown = dict.fromkeys(pods, age_of_all) if age_of_all else {}
    return shown | {pod: max(age, age_of_all) for pod, age in ages.items() if pod is not None}


def element_series(
    rows: Iterable[Row], namespaces: Collection[str]
) -> tuple[tuple[Series, ...], int, int]:
    """Return the elements as series of GPUs, and two counts of what is left out.

    They are the numbers that were refused, and the elements that name no pod of `namespaces`.
    """
    series: list[Series] = []
    refused = unmatched_elements = 0
    for row in rows:
        pod = profiles.pod_of(row.labels)
        if pod is None or pod[0] not in namespaces:
            unmatched_elements += 1
            continue
        series.append(_series(pod, row))
        refused += len(series[-1].present) - len(series[-1].times)
    return tuple(series), refused, unmatched_elements


def _series(pod: PodKey, row: Row) -> Series:
    # A pod's elements are told apart by their board, if they name one, and all other labels.
    labels = row.labels
    board = next((labels[name] for name in profiles.BOARD_LABELS if labels.get(name)), "")
    others = (f"{name}={text}" for name, text in sorted(labels.items()) if name not in _POD_LABELS)
    # NaN and infinities are not between 0 and the largest number.
    believed = [
        (time, value)
        for time, value in row.points
        if 0 <= value < _LARGEST and value not in dcgm.BLANKS
    ]
    return Series(
        *pod,
        f"{board}/{','.join(others)}",
        target_of(row),
        present=tuple(time for time, _ in row.points),
        times=tuple(time for time, _ in believed),
        values=tuple(value for _, value in believed),
        averaged=False,
        shown_by=("the query of the trigger",),
    )
