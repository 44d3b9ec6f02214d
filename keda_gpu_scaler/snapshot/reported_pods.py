"""The pods that exporters have shown, updated with each observation. Pure.

This is the evidence of exporters alone. A pod that disappeared has *ended* only if a later good
scrape of its own target lacked it. If it was in its target's last good scrape it is missing, and
its state is unknown. Absence right after a target (or the whole source) came back proves nothing.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from keda_gpu_scaler.snapshot.evidence import PodKey
from keda_gpu_scaler.snapshot.observation import (
    GpuReports,
    Observation,
    Series,
    Target,
    is_ascending,
    uuid_of,
)
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from keda_gpu_scaler.snapshot.targets import (
    LEAST_GRACE_SECONDS,
    TargetHealth,
    UpIntervals,
    absent_from_good_scrape,
    advance_targets,
    grace_seconds,
)

LOOKBACK_SECONDS = 300
"""How long a Prometheus repeats the last sample of a series whose end it has not seen."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One observation with the health of every target in it."""

    observation: Observation
    up_intervals: Mapping[Target, UpIntervals]
    targets: Mapping[Target, TargetHealth]
    naming: frozenset[Target]
    """The targets that name a pod now."""

    def saw(self, target: Target, instant: float) -> bool:
        """Tell whether a series at `instant` comes from a good scrape; for unknown targets, yes."""
        if target not in self.targets:
            return True
        return instant in self.observation.good_scrapes.get(target, {})


def update_reporting(scene: Scene, key: PodKey, known: Pod | None, group: list[Series]) -> Pod:
    """Return the pod after an observation with series of it."""
    if known is not None and len(group) == 1:
        pod = _gone_on(scene, key, known, group[0])
        if pod is not None:
            return pod
    last_seen, targets = _last_seen(scene, group)
    if last_seen is None or (known is not None and last_seen < known.last_seen):
        return known or _unscraped(key, group)
    sampled_at = _sampled_at(scene, key, last_seen, targets)
    group = _of_one_node(group, targets, last_seen)
    if known is None:
        first_seen = _began(scene, group, known)
    elif _has_moved(known, group, targets):
        is_later = any(one.present[-1] > known.last_seen for one in group)
        first_seen = _began(scene, group, known) if is_later else last_seen
    else:
        first_seen = known.first_seen
    if known is not None and known.ended_at is not None and last_seen > known.last_seen:
        if not _is_newer(scene, key, known.ended_at, group, sampled_at):
            return known
        first_seen = _began(scene, group, known)
    pod = Pod(
        name=key[1],
        gpus=_gpus(group, first_seen),
        first_seen=first_seen,
        last_seen=last_seen,
        sampled_at=sampled_at,
        scrape_interval_seconds=_interval(scene, targets),
        collection_seconds=scene.observation.collection_seconds,
        sampled_since=scene.observation.sampled_since,
        averaged=all(one.averaged for one in group if one.values),
        targets=targets,
        shows_free_gpus=all(one.shows_free_gpus for one in group),
        shown_by=tuple(dict.fromkeys(chain.from_iterable([one.shown_by for one in group]))),
    )
    if known is None or known.last_seen != last_seen:
        return pod
    return replace(
        pod,
        ended=known.ended,
        ended_at=known.ended_at,
        released_since=known.released_since,
        is_unnamed=known.is_unnamed,
        busy_unnamed_at=known.busy_unnamed_at,
    )


def _gone_on(scene: Scene, key: PodKey, known: Pod, one: Series) -> Pod | None:
    """Return what `update_reporting` does of a pod that goes on, with one GPU at the same target.

    None: it needs a closer look. Most pods need none.
    """
    scrapes, last_seen = scene.observation.good_scrapes.get(one.target, {}), one.present[-1]
    is_usual = (
        last_seen in scrapes
        and last_seen > known.last_seen
        and known.ended_at is None
        and known.targets == {one.target}
        and key not in scene.observation.sample_ages
    )
    if not is_usual:
        return None
    state = scene.targets.get(one.target)
    gpu = _samples(one.gpu, [one], -math.inf if known.first_seen is None else known.first_seen)
    return Pod(
        name=key[1],
        gpus=() if gpu is None else (gpu,),
        first_seen=known.first_seen,
        last_seen=last_seen,
        sampled_at=min(last_seen, scrapes[last_seen]),
        scrape_interval_seconds=0.0 if state is None else state.interval_seconds,
        collection_seconds=scene.observation.collection_seconds,
        sampled_since=scene.observation.sampled_since,
        averaged=one.averaged or not one.values,
        targets=known.targets,
        shows_free_gpus=one.shows_free_gpus,
        shown_by=tuple(dict.fromkeys(one.shown_by)),
    )


def _of_one_node(group: list[Series], targets: frozenset[Target], last_seen: float) -> list[Series]:
    """Leave out an earlier pod of the same name, which was shown elsewhere and on other GPUs."""
    here = _instances(targets)
    if all(one.target.instance in here for one in group):
        return group
    current = {
        uuid_of(one.gpu) for one in group if one.target in targets and one.present[-1] >= last_seen
    }
    return [
        one
        for one in group
        if one.target.instance in here or uuid_of(one.gpu) in current or not _has_uuid(one.gpu)
    ]


def _has_moved(known: Pod, group: list[Series], targets: frozenset[Target]) -> bool:
    """Tell whether a pod is another one of the same name: on other instances, and on other GPUs.

    Two jobs that scrape one instance show one node. An exporter that restarts can be another
    target; one that shows no UUIDs then shows other GPUs.
    """
    if not _instances(known.targets).isdisjoint(_instances(targets)):
        return False
    gpus = {one.gpu for one in group}
    are_named = all(map(_has_uuid, gpus.union(gpu.gpu for gpu in known.gpus)))
    former = {uuid_of(gpu.gpu) for gpu in known.gpus}
    return are_named and former.isdisjoint(map(uuid_of, gpus))


def _instances(targets: Iterable[Target]) -> set[str]:
    return {target.instance for target in targets}


def _has_uuid(gpu: str) -> bool:
    """Tell whether a GPU has a name of its own, beside its number on its target."""
    return "#" not in gpu


def _is_newer(
    scene: Scene, key: PodKey, ended_at: float, group: list[Series], sampled_at: float
) -> bool:
    """Tell whether the samples of a pod that had ended are newer than its end.

    One of two Prometheus behind one address can show a pod that the other saw go: it was down then,
    and repeats its last sample for five minutes. It shows the pod at the very instant of the end,
    which one that agrees on the end does not. The age of its sample may come from the other server,
    and then says nothing. A pod that shows no work can be waited for until no sample is repeated.
    """
    observation = scene.observation
    agrees = all(ended_at not in one.times for one in group)
    if agrees and ended_at >= observation.instants[0]:
        return True
    if key in observation.sample_ages:
        return sampled_at > ended_at
    shown = (pair for one in group for pair in zip(one.times, one.values, strict=True))
    works = any(value > 0 for time, value in shown if time > ended_at)
    return sampled_at - (LEAST_GRACE_SECONDS if works else LOOKBACK_SECONDS) > ended_at


def _last_seen(scene: Scene, group: list[Series]) -> tuple[float | None, frozenset[Target]]:
    """Find the newest instant at which healthy targets reported the pod, and which targets did."""
    newest: dict[Target, float] = {}
    for one in group:
        for seen in reversed(one.present):
            if scene.saw(one.target, seen):
                newest[one.target] = max(seen, newest.get(one.target, seen))
                break
    if not newest:
        return None, frozenset()
    last = max(newest.values())
    return last, frozenset(target for target, time in newest.items() if time == last)


def _unscraped(key: PodKey, group: list[Series]) -> Pod:
    """Return a pod with series left only of a target that is down: it was there, unseen since."""
    first = min(one.present[0] for one in group)
    targets = frozenset(one.target for one in group)
    return Pod(key[1], _gpus(group, None), None, first, first, targets=targets)


def _began(scene: Scene, group: list[Series], known: Pod | None) -> float | None:
    """Return when the pod's series began; None when it was there before, or has only come back."""
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
    scrapes = (scene.observation.good_scrapes.get(target, {}) for target in targets)
    return min(last_seen, max(times.get(last_seen, last_seen) for times in scrapes))


def _interval(scene: Scene, targets: frozenset[Target]) -> float:
    states = (scene.targets.get(target) for target in targets)
    return max(0.0 if state is None else state.interval_seconds for state in states)


def _gpus(group: list[Series], first_seen: float | None) -> tuple[GpuSamples, ...]:
    """Merge what several targets say of one GPU.

    Samples from before the pod began belong to an earlier pod of the same name.
    """
    began = float("-inf") if first_seen is None else first_seen
    by_gpu: dict[str, list[Series]] = defaultdict(list)
    for one in group:
        by_gpu[one.gpu].append(one)
    found = [_samples(gpu, by_gpu[gpu], began) for gpu in sorted(by_gpu)]
    return tuple([gpu for gpu in found if gpu is not None])


def _samples(gpu: str, shown: list[Series], began: float) -> GpuSamples | None:
    """Return the samples since a pod began; None: the GPU was not there since then."""
    one = shown[0]
    is_alone = len(shown) == 1 and one.times == one.present
    if is_alone and began <= one.times[0] and is_ascending(one.times):
        return GpuSamples(gpu, one.times, one.values)
    values: dict[float, float] = {}
    for one in shown:
        for time, value in zip(one.times, one.values, strict=True):
            values[time] = max(value, values.get(time, value))
    present = {time for one in shown for time in one.present if time >= began}
    times = tuple(sorted(time for time in values if time >= began))
    refused = tuple(sorted(present.difference(times)))
    if not present:
        return None
    return GpuSamples(gpu, times, tuple(values[time] for time in times), refused)


def update_absent(scene: Scene, pod: Pod, gpus: GpuReports, forget_seconds: float) -> Pod:
    """Return a pod that does not report now, after looking for it and for its GPUs.

    It has ended at once if both agree: a good scrape of its target lacks it, and its GPUs are
    reported without it. One of them alone counts after the settling time: an exporter that has just
    restarted may not know its pods yet. An exporter that shows no GPU at all proves nothing, except
    one that shows only GPUs with pods.

    A GPU that is busy without a pod speaks against it, until `forget_seconds` after the pod was
    named: a process outside Kubernetes may use the GPU.
    """
    at, uuids = scene.observation.at, {uuid_of(gpu.gpu) for gpu in pod.gpus}
    grace, silence = grace_seconds(pod.scrape_interval_seconds), at - pod.last_seen
    busy = bool(uuids & gpus.busy_without_pod) and silence < forget_seconds
    reported = bool(uuids) and uuids <= gpus.reported
    names_others = bool(pod.targets & scene.naming)
    known = at if pod.released_since is None else pod.released_since
    since = known if reported and not busy else None
    shows_gpus = names_others or bool(uuids & gpus.reported)
    waited_seconds = grace if shows_gpus or not pod.shows_free_gpus else forget_seconds
    absent_from_good_scrape = any(_lacked(scene, pod, target) for target in pod.targets)
    settled = absent_from_good_scrape and (since is not None or silence >= waited_seconds)
    released = since is not None and at - since >= grace
    has_ended = (pod.ended or settled or released) and not busy
    return replace(
        pod,
        released_since=since,
        is_unnamed=(reported or pod.is_unnamed) and not names_others,
        busy_unnamed_at=at if busy else pod.busy_unnamed_at,
        ended=has_ended,
        ended_at=None if not has_ended else at if pod.ended_at is None else pod.ended_at,
    )


def _lacked(scene: Scene, pod: Pod, target: Target) -> bool:
    state = scene.targets.get(target)
    settle = grace_seconds(state.interval_seconds if state is not None else 0.0)
    return absent_from_good_scrape(scene.up_intervals.get(target, {}), pod.last_seen, settle)


MISSING_PODS_KEPT = 20_000
"""How many pods that disappeared together with their exporters are remembered."""
TARGETS_KEPT = 20_000
"""How many targets are remembered; a cluster has one for each node with a GPU."""


@dataclass(frozen=True, slots=True)
class ReportedPods:
    """All that is remembered of pods between two observations."""

    at: float | None = None
    pods: Mapping[PodKey, Pod] = field(default_factory=dict)
    targets: Mapping[Target, TargetHealth] = field(default_factory=dict)


def advance_reported_pods(
    reported_pods: ReportedPods,
    observation: Observation,
    gpus: GpuReports,
    forget_seconds: float,
) -> ReportedPods:
    """Return the reported pods after an observation.

    Args:
        reported_pods: what was known before.
        observation: what the source shows now.
        gpus: where the GPUs named by `absent_gpus` are now.
        forget_seconds: how long an ended pod is remembered.
    """
    up_intervals, targets = advance_targets(reported_pods.targets, reported_pods.at, observation)
    at = observation.at
    naming = frozenset(one.target for one in observation.series if one.present[-1] >= at)
    scene = Scene(observation, up_intervals, targets, naming)
    pods = dict(reported_pods.pods)
    for key, group in _by_pod(observation.series).items():
        pods[key] = update_reporting(scene, key, pods.get(key), group)
    for key, pod in [(key, pod) for key, pod in pods.items() if pod.last_seen < at]:
        # Its exporter may not know its pods.
        if not pod.ended or pod.is_unnamed:
            pods[key] = update_absent(scene, pod, gpus, forget_seconds)
    kept = _kept(pods, at, forget_seconds)
    return ReportedPods(at, kept, _watched(targets, kept, at - forget_seconds))


def absent_gpus(reported_pods: ReportedPods, observation: Observation) -> frozenset[str]:
    """Return the UUIDs of GPUs with pods that are absent now and may not have ended."""
    at = observation.at
    here = {(one.namespace, one.pod) for one in observation.series if one.present[-1] >= at}
    known = {
        gpu.gpu
        for key, pod in reported_pods.pods.items()
        if key not in here and (not pod.ended or pod.is_unnamed)
        for gpu in pod.gpus
    }
    new = {
        one.gpu
        for one in observation.series
        if (one.namespace, one.pod) not in here
        and (one.namespace, one.pod) not in reported_pods.pods
    }
    return frozenset(uuid_of(gpu) for gpu in known | new)


def join(
    reported_pods: ReportedPods, history: ReportedPods, unsure_seconds: float = 0.0
) -> ReportedPods:
    """Return `reported_pods` with the pods of namespaces that were not asked about before.

    Args:
        reported_pods: what is known.
        history: the pods of the new namespaces, from the past.
        unsure_seconds: the time between two instants of that past.
    """
    past = {key: replace(pod, unsure_seconds=unsure_seconds) for key, pod in history.pods.items()}
    return ReportedPods(
        history.at if reported_pods.at is None else reported_pods.at,
        {**past, **reported_pods.pods},
        {**history.targets, **reported_pods.targets},
    )


def busy_before(reported_pods: ReportedPods, gpus: GpuReports, at: float) -> ReportedPods:
    """Return the pods with those marked of which a GPU was busy without a pod at an earlier time.

    Args:
        reported_pods: the pods from the past of new namespaces.
        gpus: where GPUs were then.
        at: that time.
    """
    marked = {
        key: replace(pod, busy_unnamed_at=at)
        for key, pod in reported_pods.pods.items()
        if pod.last_seen < at and {uuid_of(gpu.gpu) for gpu in pod.gpus} & gpus.busy_without_pod
    }
    return replace(reported_pods, pods={**reported_pods.pods, **marked})


def confined(reported_pods: ReportedPods, namespaces: Iterable[str]) -> ReportedPods:
    """Return the reported pods of these namespaces only; no trigger asks about others."""
    kept = frozenset(namespaces)
    return replace(
        reported_pods, pods={key: pod for key, pod in reported_pods.pods.items() if key[0] in kept}
    )


def _by_pod(series: Iterable[Series]) -> dict[PodKey, list[Series]]:
    grouped: dict[PodKey, list[Series]] = defaultdict(list)
    for one in series:
        grouped[one.namespace, one.pod].append(one)
    return grouped


def _watched(
    targets: Mapping[Target, TargetHealth], pods: Mapping[PodKey, Pod], since: float
) -> dict[Target, TargetHealth]:
    """Drop targets that were last good long ago and that reported no remembered pod."""
    named = {target for pod in pods.values() for target in pod.targets}
    kept = {
        target: state
        for target, state in targets.items()
        if state.last_good >= since or target in named
    }
    oldest = sorted(kept.keys() - named, key=lambda target: kept[target].last_good)
    for target in oldest[: max(0, len(kept) - TARGETS_KEPT)]:
        del kept[target]
    return kept


def _kept(pods: Mapping[PodKey, Pod], at: float, forget_seconds: float) -> dict[PodKey, Pod]:
    kept = {
        key: pod
        for key, pod in pods.items()
        if not (pod.ended and at - pod.last_seen > forget_seconds)
    }
    missing = [key for key, pod in kept.items() if pod.last_seen < at and not pod.ended]
    missing.sort(key=lambda key: kept[key].last_seen)
    for key in missing[: max(0, len(missing) - MISSING_PODS_KEPT)]:
        del kept[key]
    return kept
