"""One pod, as the series of one observation show it: seen, silent, come back or ended.

Pure. `presence.py` keeps the book; the judgement on a single pod is here.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from keda_gpu_scaler import health
from keda_gpu_scaler.health import Health, Runs
from keda_gpu_scaler.observation import GpuReports, Observation, Series, Target, uuid_of
from keda_gpu_scaler.snapshot import GpuSamples, Pod

PodKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One observation with the health of every target in it."""

    observation: Observation
    runs: Mapping[Target, Runs]
    targets: Mapping[Target, Health]

    def saw(self, target: Target, instant: float) -> bool:
        """Tell whether a series there at `instant` was really scraped; unwatched targets are."""
        if target not in self.targets:
            return True
        return instant in self.observation.good_scrapes.get(target, {})


def seen(scene: Scene, key: PodKey, known: Pod | None, group: list[Series]) -> Pod:
    """Return the pod after an observation that has series of it."""
    last_seen, targets = _last_seen(scene, group)
    if last_seen is None or (known is not None and last_seen < known.last_seen):
        return known or _unscraped(key, group)
    anew = known is None or (known.ended and last_seen > known.last_seen)
    first_seen = _began(scene, group, known) if known is None or anew else known.first_seen
    return Pod(
        name=key[1],
        gpus=_gpus(group, first_seen),
        first_seen=first_seen,
        last_seen=last_seen,
        sampled_at=_sampled_at(scene, key, last_seen, targets),
        scrape_interval_seconds=_interval(scene, targets),
        collection_seconds=scene.observation.collection_seconds,
        averaged=all(one.averaged for one in group if one.values),
        targets=targets,
        ended=known is not None and known.ended and not anew,
        released_since=known.released_since if known and known.last_seen == last_seen else None,
    )


def _last_seen(scene: Scene, group: list[Series]) -> tuple[float | None, frozenset[Target]]:
    """Find the newest instant at which a target in good health reported the pod, and who did."""
    newest: dict[Target, float] = {}
    for one in group:
        seen = next((time for time in reversed(one.present) if scene.saw(one.target, time)), None)
        if seen is not None:
            newest[one.target] = max(seen, newest.get(one.target, seen))
    if not newest:
        return None, frozenset()
    last = max(newest.values())
    return last, frozenset(target for target, time in newest.items() if time == last)


def _unscraped(key: PodKey, group: list[Series]) -> Pod:
    """A series that only lingers under a target that is down: there was a pod, unseen since."""
    first = min(one.present[0] for one in group)
    targets = frozenset(one.target for one in group)
    return Pod(key[1], _gpus(group, None), None, first, first, targets=targets)


def _began(scene: Scene, group: list[Series], known: Pod | None) -> float | None:
    """Say when the pod's series began; None when it was there before, or has only come back."""
    after = known.last_seen if known is not None else float("-inf")
    first, target = min((time, one.target) for one in group for time in one.present if time > after)
    if first <= scene.observation.instants[0]:
        return None
    state = scene.targets.get(target)
    if state is not None and state.returned_at == first:
        return None
    return first


def _sampled_at(scene: Scene, key: PodKey, last_seen: float, targets: frozenset[Target]) -> float:
    age = scene.observation.sample_ages.get(key)
    if age is not None and last_seen == scene.observation.at:
        return last_seen - age
    scrapes = scene.observation.good_scrapes
    return max(
        min(scrapes.get(target, {}).get(last_seen, last_seen), last_seen) for target in targets
    )


def _interval(scene: Scene, targets: frozenset[Target]) -> float:
    states = (scene.targets.get(target) for target in targets)
    return max(state.interval_seconds if state is not None else 0.0 for state in states)


def _gpus(group: list[Series], first_seen: float | None) -> tuple[GpuSamples, ...]:
    """Merge what several targets say of one GPU.

    Samples from before the pod began belong to another one of the same name.
    """
    began = float("-inf") if first_seen is None else first_seen
    present: dict[str, set[float]] = defaultdict(set)
    merged: dict[str, dict[float, float]] = defaultdict(dict)
    for one in group:
        present[one.gpu].update(time for time in one.present if time >= began)
        values = merged[one.gpu]
        for time, value in zip(one.times, one.values, strict=True):
            if time >= began:
                values[time] = max(value, values.get(time, value))
    return tuple(
        _samples(gpu, merged[gpu], times) for gpu, times in sorted(present.items()) if times
    )


def _samples(gpu: str, values: Mapping[float, float], present: set[float]) -> GpuSamples:
    times = tuple(sorted(values))
    refused = tuple(sorted(present - values.keys()))
    return GpuSamples(gpu, times, tuple(values[time] for time in times), refused)


def looked_for(scene: Scene, pod: Pod, gpus: GpuReports) -> Pod:
    """Return a pod that does not report now, after looking for it and for its GPUs.

    It has ended at once where both agree: its target was scraped well without it, and its GPUs are
    reported without it. One of them alone is believed after the settling time: an exporter that was
    only just restarted shows no GPU yet, or does not know its pods yet.
    """
    at, uuids = scene.observation.at, {uuid_of(gpu.gpu) for gpu in pod.gpus}
    patience = health.patience_seconds(pod.scrape_interval_seconds)
    busy = bool(uuids & gpus.busy_without_pod)
    known = at if pod.released_since is None else pod.released_since
    since = known if uuids <= gpus.reported and not busy else None
    lacked = any(_lacked(scene, pod, target) for target in pod.targets)
    settled = lacked and (since is not None or at - pod.last_seen >= patience)
    released = since is not None and at - since >= patience
    ended = (settled or released) and not busy
    return replace(pod, released_since=since, ended=ended)


def _lacked(scene: Scene, pod: Pod, target: Target) -> bool:
    state = scene.targets.get(target)
    settle = health.patience_seconds(state.interval_seconds if state is not None else 0.0)
    return health.lacked(scene.runs.get(target, {}), pod.last_seen, settle)
