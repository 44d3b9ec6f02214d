"""The pods that exporters have shown, updated with each observation. Pure.

This is the evidence of exporters alone. A pod that disappeared has *ended* only if a later good
scrape of its own target lacked it, or its GPUs are shown without it. If it was in its target's last
good scrape it is missing, and its state is unknown. Absence right after a target (or the whole
source) came back proves nothing.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from keda_gpu_scaler.snapshot.evidence import PodKey
from keda_gpu_scaler.snapshot.observation import (
    GpuReports,
    Observation,
    Series,
    Target,
    TargetHealth,
    UpIntervals,
    absent_from_good_scrape,
    advance_targets,
    grace_seconds,
    is_ascending,
    uuid_of,
)
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, GpuSamples, Pod
from keda_gpu_scaler.times import LEAST_GRACE_SECONDS, LOOKBACK_SECONDS, REMEMBERED_SECONDS

ABSENT_PODS_KEPT = 20_000
"""How many pods that are not shown any more are remembered; missing ones rather than ended ones."""
ABSENT_ELEMENTS_KEPT = 1_000
"""For a custom query: it can name thousands of new pods at each step, and a tenant has 20."""


@dataclass(frozen=True, slots=True)
class ReportedPods:
    """All that is remembered of pods between two observations."""

    at: float = NEVER_SEEN
    pods: Mapping[PodKey, Pod] = field(default_factory=dict)
    targets: Mapping[Target, TargetHealth] = field(default_factory=dict)


def absent_gpus(reported_pods: ReportedPods, observation: Observation) -> frozenset[str]:
    """Return the UUIDs of GPUs with pods that are absent now and may not have ended."""
    at, known = observation.at, reported_pods.pods
    groups = observation.by_pod()
    shown = {key for key, group in groups.items() if any(one.present[-1] >= at for one in group)}
    looked_for = {key for key, pod in known.items() if not pod.ended or pod.is_unnamed} - shown
    gpus = [gpu.gpu for key in looked_for for gpu in known[key].gpus]
    gpus += [one.gpu for key in groups.keys() - shown - known.keys() for one in groups[key]]
    return frozenset(map(uuid_of, gpus))


def join(
    reported_pods: ReportedPods, history: ReportedPods, unsure_seconds: float = 0.0
) -> ReportedPods:
    """Return `reported_pods` with what they miss: pods of new namespaces, or seen in a gap.

    `history` has these from the past, with `unsure_seconds` between two of its instants.
    """
    past = {
        key: replace(pod, unsure_seconds=unsure_seconds)
        for key, pod in history.pods.items()
        if key not in reported_pods.pods or reported_pods.pods[key].last_seen < pod.last_seen
    }
    return ReportedPods(
        history.at if reported_pods.at == NEVER_SEEN else reported_pods.at,
        {**reported_pods.pods, **past},
        {**history.targets, **reported_pods.targets},
    )


def busy_before(reported_pods: ReportedPods, gpus: GpuReports, at: float) -> ReportedPods:
    """Return the pods with those marked of which a GPU was busy without a pod at `at`.

    The pods are from the past of new namespaces, and `gpus` says where GPUs were then.
    """
    marked = {
        key: replace(pod, busy_unnamed_at=at)
        for key, pod in reported_pods.pods.items()
        if pod.last_seen < at and not gpus.busy_without_pod.isdisjoint(_uuids(pod))
    }
    return replace(reported_pods, pods={**reported_pods.pods, **marked})


def confined(
    reported_pods: ReportedPods, namespaces: Collection[str], invented: Collection[PodKey] = ()
) -> ReportedPods:
    """Return the reported pods of these namespaces, without those that turned out not to exist."""
    pods = {
        key: pod
        for key, pod in reported_pods.pods.items()
        if key[0] in namespaces and key not in invented
    }
    return replace(reported_pods, pods=pods)


@dataclass(frozen=True, slots=True)
class Scene:
    """One observation with the health of every target in it."""

    observation: Observation
    at: float
    """The observation's instant, read for each pod."""
    up_intervals: Mapping[Target, UpIntervals]
    targets: Mapping[Target, TargetHealth]
    naming: frozenset[Target]
    """The targets that name a pod now."""

    def saw(self, target: Target, instant: float) -> bool:
        """Tell whether a series at `instant` comes from a good scrape; for unknown targets, yes."""
        if target not in self.targets:
            return True
        return instant in self.observation.good_scrapes.get(target, {})

    def scrape_interval(self, target: Target) -> float:
        """Return how often a target is scraped; 0 while that is not known."""
        return self.targets[target].interval_seconds if target in self.targets else 0.0


def advance_reported_pods(
    reported_pods: ReportedPods,
    observation: Observation,
    gpus: GpuReports,
    absent_kept: int = ABSENT_PODS_KEPT,
) -> ReportedPods:
    """Return the reported pods after an observation.

    `gpus` says where the GPUs named by `absent_gpus` are now. An ended pod is remembered for
    `REMEMBERED_SECONDS`, and of pods that are not shown `absent_kept`.
    """
    up_intervals, targets = advance_targets(reported_pods.targets, reported_pods.at, observation)
    at = observation.at
    naming = frozenset(series.target for series in observation.series if series.present[-1] >= at)
    scene = Scene(observation, at, up_intervals, targets, naming)
    pods = dict(reported_pods.pods)
    for key, group in observation.by_pod().items():
        pods[key] = _update_reporting(scene, key, pods.get(key), group)
    for key, pod in [(key, pod) for key, pod in pods.items() if pod.last_seen < at]:
        # Its exporter may not know its pods.
        if not pod.ended or pod.is_unnamed:
            pods[key] = _update_absent(scene, pod, gpus)
    pods = _kept(pods, at, absent_kept)
    with_pods = {target for pod in pods.values() for target in pod.targets}
    recent = {
        target: state
        for target, state in targets.items()
        if state.last_good >= at - REMEMBERED_SECONDS or target in with_pods
    }
    return ReportedPods(at, pods, recent)


def _kept(pods: Mapping[PodKey, Pod], at: float, absent_kept: int) -> dict[PodKey, Pod]:
    kept = {
        key: pod
        for key, pod in pods.items()
        if not (pod.ended and at - pod.last_seen > REMEMBERED_SECONDS)
    }
    absent = [key for key, pod in kept.items() if pod.last_seen < at]
    absent.sort(key=lambda key: (not kept[key].ended, kept[key].last_seen))
    for key in absent[: max(0, len(absent) - absent_kept)]:
        del kept[key]
    return kept


_KEPT_WHILE_ABSENT = "ended", "ended_at", "released_since", "is_unnamed", "busy_unnamed_at"


def _update_reporting(scene: Scene, key: PodKey, known: Pod | None, group: list[Series]) -> Pod:
    """Return the pod after an observation with series of it."""
    last_seen, targets = _last_seen(scene, group)
    if known is not None and last_seen < known.last_seen:
        return known
    if not targets:  # only a target that is down has series of it: it was there, unseen since
        first = min(series.present[0] for series in group)
        targets = frozenset(series.target for series in group)
        return Pod(key[1], _gpus(group, NEVER_SEEN), NEVER_SEEN, first, first, targets=targets)
    group = _of_one_node(group, targets, last_seen)
    sampled_at = _sampled_at(scene, key, last_seen, targets)
    is_same = known is not None and known.last_seen == last_seen
    if known and not is_same and not _is_newer(scene, known.ended_at, group, sampled_at):
        return known
    first_seen = _first_seen(scene, known, group, targets, last_seen)
    kept = {name: getattr(known, name) for name in _KEPT_WHILE_ABSENT if is_same}
    return Pod(
        name=key[1],
        gpus=_gpus(group, first_seen),
        first_seen=first_seen,
        last_seen=last_seen,
        sampled_at=sampled_at,
        scrape_interval_seconds=max(map(scene.scrape_interval, targets)),
        collection_seconds=scene.observation.collection_seconds,
        sampled_since=scene.observation.sampled_since,
        averaged=all(series.averaged for series in group if series.values),
        targets=targets,
        shows_free_gpus=all(series.shows_free_gpus for series in group),
        shown_by=tuple(dict.fromkeys(chain.from_iterable([series.shown_by for series in group]))),
        stuck=frozenset([series.stuck for series in group if series.stuck]),
        contradicted_at=max(series.contradicted_at for series in group),
        **kept,
    )


def _of_one_node(group: list[Series], targets: frozenset[Target], last_seen: float) -> list[Series]:
    """Leave out an earlier pod of the same name, which was shown elsewhere and on other GPUs."""
    here = _instances(targets)
    if all(series.target.instance in here for series in group):  # as a rule
        return group
    current = {
        uuid_of(series.gpu)
        for series in group
        if series.target in targets and series.present[-1] >= last_seen
    }
    return [
        series
        for series in group
        if series.target.instance in here
        or uuid_of(series.gpu) in current
        or not _has_uuid(series.gpu)
    ]


def _has_moved(known: Pod, group: list[Series], targets: frozenset[Target]) -> bool:
    """Tell whether a pod is another one of the same name: on other instances, and on other GPUs.

    Two jobs that scrape one instance show one node. An exporter that restarts can be another
    target; one that shows no UUIDs then shows other GPUs.
    """
    if not _instances(known.targets).isdisjoint(_instances(targets)):
        return False
    gpus = {series.gpu for series in group}
    are_named = all(map(_has_uuid, gpus.union(gpu.gpu for gpu in known.gpus)))
    return are_named and _uuids(known).isdisjoint(map(uuid_of, gpus))


def _uuids(pod: Pod) -> set[str]:
    return {uuid_of(gpu.gpu) for gpu in pod.gpus}


def _instances(targets: Iterable[Target]) -> set[str]:
    return {target.instance for target in targets}


def _has_uuid(gpu: str) -> bool:
    """Tell whether a GPU has a name of its own, beside its number on its target."""
    return "#" not in gpu


def _is_newer(scene: Scene, ended_at: float, group: list[Series], sampled_at: float) -> bool:
    """Tell whether the samples of a pod are newer than its end, if exporters showed one.

    One of two Prometheus behind one address can show a pod that the other saw go: it was down then,
    and repeats its last sample for five minutes. It shows the pod at the very instant of the end,
    which one that agrees on the end does not. The age of its sample may come from the other server,
    and then says nothing. A pod that shows no work can be waited for until no sample is repeated.
    """
    observation = scene.observation
    agrees = all(ended_at not in series.times for series in group)
    if agrees and ended_at >= observation.instants[0]:
        return True
    if group[0].key in observation.sample_ages:
        return sampled_at > ended_at
    samples = (pair for series in group for pair in zip(series.times, series.values, strict=True))
    has_work = any(value > 0 for time, value in samples if time > ended_at)
    return sampled_at - (LEAST_GRACE_SECONDS if has_work else LOOKBACK_SECONDS) > ended_at


def _last_seen(scene: Scene, group: list[Series]) -> tuple[float, frozenset[Target]]:
    """Find the newest instant at which healthy targets reported the pod, and which targets did."""
    newest: dict[Target, float] = {}
    for series in group:
        for seen in reversed(series.present):
            if scene.saw(series.target, seen):
                newest[series.target] = max(seen, newest.get(series.target, seen))
                break
    last = max(newest.values(), default=NEVER_SEEN)
    return last, frozenset(target for target, time in newest.items() if time == last)


def _first_seen(
    scene: Scene,
    known: Pod | None,
    group: list[Series],
    targets: frozenset[Target],
    last_seen: float,
) -> float:
    """Return when the pod began, which is later if it is another one of the same name now."""
    if known is not None:
        has_returned = known.ended_at < math.inf and last_seen > known.last_seen
        if not has_returned and not _has_moved(known, group, targets):
            return known.first_seen
        if all(series.present[-1] <= known.last_seen for series in group):
            return last_seen
    return _began(scene, group, NEVER_SEEN if known is None else known.last_seen)


def _began(scene: Scene, group: list[Series], after: float) -> float:
    """Return when the pod's series began, if it was not there before, nor has only come back."""
    first, target = min(
        (time, series.target) for series in group for time in series.present if time > after
    )
    state = scene.targets.get(target)
    has_returned = state is not None and state.returned_at == first
    return NEVER_SEEN if has_returned or first <= scene.observation.instants[0] else first


def _sampled_at(scene: Scene, key: PodKey, last_seen: float, targets: frozenset[Target]) -> float:
    age = scene.observation.sample_ages.get(key)
    if age is not None and last_seen == scene.at:
        return last_seen - age
    good_scrapes = scene.observation.good_scrapes
    times = [good_scrapes.get(target, {}).get(last_seen, last_seen) for target in targets]
    return min(last_seen, max(times))


def _gpus(group: list[Series], began: float) -> tuple[GpuSamples, ...]:
    """Merge what several targets say of one GPU.

    Samples from before the pod began belong to an earlier pod of the same name.
    """
    if len(group) == 1:  # as a rule
        only = _samples(group[0].gpu, group, began)
        return () if only is None else (only,)
    by_gpu: dict[str, list[Series]] = defaultdict(list)
    for series in group:
        by_gpu[series.gpu].append(series)
    merged = [_samples(gpu, by_gpu[gpu], began) for gpu in sorted(by_gpu)]
    return tuple([gpu for gpu in merged if gpu is not None])


def _samples(gpu: str, shown: list[Series], began: float) -> GpuSamples | None:
    """Return the samples since a pod began; None: the GPU was not there since then."""
    series = shown[0]
    is_alone = len(shown) == 1 and series.times == series.present
    if is_alone and began <= series.times[0] and is_ascending(series.times):
        return GpuSamples(gpu, series.times, series.values)
    values: dict[float, float] = {}
    for series in shown:
        for time, value in zip(series.times, series.values, strict=True):
            values[time] = max(value, values.get(time, value))
    present = {time for series in shown for time in series.present if time >= began}
    times = tuple(sorted(time for time in values if time >= began))
    refused = tuple(sorted(present.difference(times)))
    if not present:
        return None
    return GpuSamples(gpu, times, tuple(values[time] for time in times), refused)


def _update_absent(scene: Scene, pod: Pod, gpus: GpuReports) -> Pod:
    """Return a pod that does not report now, by what exporters show of its GPUs now.

    It works if one of them is busy without a pod: the exporter has lost its map. An hour after the
    pod was named (`REMEMBERED_SECONDS`) that may be a process outside Kubernetes. It is released if
    all of them are reported, with other pods or without one. Else it is missing until it has ended.
    """
    at, uuids = scene.at, _uuids(pod)
    are_reported = bool(uuids) and uuids <= gpus.reported
    is_unnamed = (are_reported or pod.is_unnamed) and pod.targets.isdisjoint(scene.naming)
    released_since = min(at, pod.released_since) if are_reported else math.inf
    pod = replace(pod, released_since=released_since, is_unnamed=is_unnamed)
    if at - pod.last_seen < REMEMBERED_SECONDS and not uuids.isdisjoint(gpus.busy_without_pod):
        pod = replace(pod, released_since=math.inf, busy_unnamed_at=at)
        return replace(pod, ended=False, ended_at=math.inf)
    if pod.ended or _has_ended(scene, pod, gpus):
        return replace(pod, ended=True, ended_at=min(at, pod.ended_at))
    return pod


def _has_ended(scene: Scene, pod: Pod, gpus: GpuReports) -> bool:
    """Tell whether a pod of which no GPU is busy has ended.

    It has at once if both agree: it is absent from a good scrape of its target, and it is released.
    One of them alone counts after the grace: an exporter that has just restarted may not know its
    pods yet. Absence from an exporter that shows no GPU at all now counts only after an hour
    (`REMEMBERED_SECONDS`), unless it shows only GPUs with pods: it has nothing to show then.
    """
    at, grace = scene.at, grace_seconds(pod.scrape_interval_seconds)
    is_absent = any(
        absent_from_good_scrape(
            scene.up_intervals.get(target, {}),
            pod.last_seen,
            grace_seconds(scene.scrape_interval(target)),
        )
        for target in pod.targets
    )
    if is_absent and pod.released_since <= at:
        return True
    are_shown = not gpus.reported.isdisjoint(_uuids(pod))
    is_blind = not are_shown and pod.shows_free_gpus and pod.targets.isdisjoint(scene.naming)
    is_absent_for_long = at - pod.last_seen >= (REMEMBERED_SECONDS if is_blind else grace)
    return at - pod.released_since >= grace or (is_absent and is_absent_for_long)
