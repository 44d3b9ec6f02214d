"""A user's own query: the texts it is asked with, and its elements as GPUs of pods.

Pure. An element names its pod by the labels of any convention that exporters are read by; what
else it carries tells the GPUs of one pod apart. What names no pod counts for nobody.
"""

from collections.abc import Collection, Iterable, Mapping

from keda_gpu_scaler import durations, profiles, query
from keda_gpu_scaler.observation import Row, Series, Target
from keda_gpu_scaler.own_query import Origin, OwnQuery
from keda_gpu_scaler.sighting import PodKey

ORIGIN_LABEL = "origin"
"""Keeps apart what the selectors of a query say of one pod."""
_BLANK = frozenset(
    float(first + number)
    for first in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 2**47)
    for number in range(4)
)
"""What DCGM's libraries say instead of a number they do not have; old exporters pass it on."""
_LARGEST = 2.0**53
_POD_LABELS = frozenset({*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS})


def snapshot(own: OwnQuery, span_seconds: float, step_seconds: float) -> str:
    """Return the query for the points of every element, one each step."""
    span, step = durations.text(span_seconds), durations.text(step_seconds)
    # A comment at the end of what the user wrote ends with the line.
    return f"({own.text}\n)[{span}:{step}]"


def targets(jobs: Iterable[str], span_seconds: float, step_seconds: float) -> str:
    """Return the query for the good scrapes of the elements' targets."""
    span, step = durations.text(span_seconds), durations.text(step_seconds)
    return f"({query.good_scrapes(jobs)})[{span}:{step}]"


def ages(own: OwnQuery, step_seconds: float) -> str:
    """Return the query for the ages of what the numbers are made of, where it is not fresh.

    An average over ten minutes goes on for ten minutes after its samples have ended, and looks
    fresh all the time: so the samples are asked for their times, not the result.
    """
    newest = [
        query.marked(_newest(origin, step_seconds), ORIGIN_LABEL, str(number))
        for number, origin in enumerate(own.origins)
    ]
    return f"time() - ({' or '.join(newest)}) > {query.STALE_SECONDS}"


def oldest(rows: Iterable[Row], pods: Iterable[PodKey]) -> dict[PodKey, float]:
    """Return the ages of pods: each is as old as the oldest thing that its numbers are made of.

    Args:
        rows: what `ages` found.
        pods: those that the query shows.
    """
    found: dict[PodKey | None, float] = {}
    for row in rows:
        pod, age = profiles.pod_of(row.labels), row.points[-1][1]
        found[pod] = max(age, found.get(pod, age))
    everybody = found.pop(None, 0.0)
    shown = dict.fromkeys(pods, everybody) if everybody else {}
    return shown | {pod: max(age, everybody) for pod, age in found.items() if pod is not None}


def series(rows: Iterable[Row], namespaces: Collection[str]) -> tuple[tuple[Series, ...], int, int]:
    """Return the elements as series of GPUs, and what does not count.

    Args:
        rows: the elements with their points.
        namespaces: those that are asked about.

    Returns:
        The series; how many numbers were refused; how many elements name no pod of `namespaces`.
    """
    found: list[Series] = []
    refused = strangers = 0
    for row in rows:
        pod = profiles.pod_of(row.labels)
        if pod is None or pod[0] not in namespaces:
            strangers += 1
            continue
        found.append(_series(pod, row))
        refused += len(found[-1].present) - len(found[-1].times)
    return tuple(found), refused, strangers


def _newest(origin: Origin, step_seconds: float) -> str:
    times = f"timestamp({origin.selector})"
    if origin.reach_seconds:
        # A step more than the reach: an instant is within it in any case.
        span = durations.text(origin.reach_seconds + step_seconds)
        times = f"max_over_time({times}[{span}:{durations.text(step_seconds)}])"
    names = ", ".join((*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS))
    return f"max by ({names}) ({times})"


def _series(pod: PodKey, row: Row) -> Series:
    believed = [(time, value) for time, value in row.points if _is_believable(value)]
    return Series(
        *pod,
        _gpu(row.labels),
        Target(row.labels.get("job", ""), row.labels.get("instance", "")),
        present=tuple(time for time, _ in row.points),
        times=tuple(time for time, _ in believed),
        values=tuple(value for _, value in believed),
        averaged=False,
    )


def _gpu(labels: Mapping[str, str]) -> str:
    """Identify an element of a pod: by its board where it names one, and by all it carries."""
    board = next((labels[name] for name in profiles.BOARD_LABELS if labels.get(name)), "")
    rest = (f"{name}={text}" for name, text in sorted(labels.items()) if name not in _POD_LABELS)
    return f"{board}/{','.join(rest)}"


def _is_believable(value: float) -> bool:
    """NaN fails every comparison, and infinities one of these two."""
    return 0 <= value < _LARGEST and value not in _BLANK
