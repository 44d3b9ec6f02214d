"""Rows of a Prometheus → what they say of the pods. Pure."""

from keda_gpu_scaler import profiles, readings, sharing
from keda_gpu_scaler.observation import Need, Observation, Row, Target
from keda_gpu_scaler.sources import instants


def observation(rows: list[Row], need: Need, at: float, step: float) -> Observation:
    """Return what the rows of a snapshot show.

    Args:
        rows: GPUs with their pods, and the good scrapes of their targets.
        need: what was asked for.
        at: the newest instant.
        step: the seconds between two instants.
    """
    times = instants.within(at, need.span_seconds, step)
    rows = instants.since(times[0], rows)
    targets = [row for row in rows if profiles.pod_of(row.labels) is None]
    series, refused = readings.series(rows, need.profile, need.signal)
    good_scrapes = {
        Target(row.labels.get("job", ""), row.labels.get("instance", "")): dict(row.points)
        for row in targets
    }
    return Observation(
        instants=times,
        series=sharing.steadied(series, good_scrapes),
        good_scrapes=good_scrapes,
        refused_samples=refused,
    )


def ages(rows: list[Row]) -> dict[tuple[str, str], float]:
    """Return how old the newest sample of each pod is: it is as fresh as its freshest series."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        pod = profiles.pod_of(row.labels)
        if pod is not None:
            age = row.points[0][1]
            found[pod] = min(age, found.get(pod, age))
    return found
