"""What would give another number of replicas: the smallest change of load, demand or setting.

Pure. The HPA's numbers are found by asking its rules (`autoscaling.rules`) in thousandths, as it
counts itself, so that they hold to the last digit. What is not known gives no number: the answer is
then what is missing. Behind it are the gates of the HPA and of KEDA, which are not ours.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.decision.pod_state import FULL, PodState
from keda_gpu_scaler.record.record import Activation, Metric, Pod, Record, Says
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.demand import METRIC_NAME, is_countable
from keda_gpu_scaler.spec.spec import Aggregation, Signal
from keda_gpu_scaler.trigger.rules import REACHABLE_PERCENT

_SHOWN_PODS = 10
_MOST_PERCENT = 100
_RAISING = frozenset({Aggregation.MAX, Aggregation.P95})
"""They take the load of one replica for that of each."""
_MILLI = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One thing that has to be otherwise; all bounds that are there have to hold."""

    of: str
    """The metric or the activation signal that it is about."""
    key: str | None
    """The key of the trigger to change; None: the number itself has to change."""
    now: float | None
    """What it is; None: it is no number."""
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """What would give a number of replicas by one trigger."""

    scaled_object: str
    """namespace/name"""
    metric_name: str
    wanted: int
    replicas: int
    """The replicas that there are."""
    is_so: bool
    """The trigger asks for it already; gates behind it may hold."""
    reasons: tuple[str, ...]
    """What is not known, what cannot be, and what else decides."""
    ways: tuple[tuple[Need, ...], ...]
    """Each is enough by itself, with all of its changes; none: no number can be told."""


class _Found:
    """Reasons and ways while they are found."""

    def __init__(self) -> None:
        self.is_so = False
        self.reasons: list[str] = []
        self.ways: list[tuple[Need, ...]] = []

    def so(self, reason: str) -> None:
        self.is_so = True
        self.reasons.append(reason)

    def way(self, changes: Iterable[Need | None]) -> None:
        """Add a way, unless one of its changes cannot be."""
        found = tuple(changes)
        known = tuple(one for one in found if one is not None)
        if known and len(known) == len(found):
            self.ways.append(known)


def why_not(record: Record, wanted: int) -> WhyNot:
    """Return what would give so many replicas, by what a record knows.

    Args:
        record: of the trigger, as it is now.
        wanted: how many; 0 is KEDA's part, and more than 0 the HPA's.
    """
    found, replicas = _Found(), record.metrics[0].replicas if record.metrics else 0
    if wanted == 0:
        _zero(record, replicas, found)
    elif replicas == 0:
        _wake(record, wanted, found)
    else:
        _scale(record, wanted, replicas, found)
    return WhyNot(
        scaled_object=record.scaled_object,
        metric_name=record.metrics[0].name if record.metrics else "",
        wanted=wanted,
        replicas=replicas,
        is_so=found.is_so,
        reasons=tuple(found.reasons),
        ways=tuple(found.ways),
    )


# Zero, and from zero


def _zero(record: Record, replicas: int, found: _Found) -> None:
    if record.active is False:
        found.so(
            "it is inactive and has no replicas"
            if replicas == 0
            else "it is inactive: KEDA takes the last replica after its cooldownPeriod, where "
            "minReplicaCount is 0 and no other trigger is active"
        )
        return
    if record.state in _IN_DOUBT:
        found.reasons += [f"it is {record.state}: {record.reason}", *_missing(record)]
        return
    for one in record.activation:
        if one.says is Says.UNKNOWN:
            found.reasons.append(f"{one.signal} is not known: {one.reason}")
    found.reasons += [
        f"pod {one.name}: {one.reason}" for one in record.pods if one.state == _STARTING
    ]
    active = [one for one in record.activation if one.says is Says.ACTIVE]
    if not found.reasons:
        found.way(_quieter(record, one) for one in active)
        found.way(_higher_level(record, one) for one in active)
    elif active:
        found.reasons += [_quieter(record, one).text for one in active]
    later = [one.signal for one in record.activation if one.says is Says.NOT_ASKED]
    if later:
        found.reasons.append(f"{' and '.join(later)} would then be asked as well")


def _wake(record: Record, wanted: int, found: _Found) -> None:
    if record.active:
        found.is_so = wanted == 1
        found.reasons.append("it is active: KEDA starts it with 1 replica, or minReplicaCount")
    else:
        for one in record.activation:
            if one.signal == "gpus":
                found.reasons.append("its own GPUs cannot wake it: there is no pod to show any")
            elif one.says is Says.UNKNOWN:
                found.reasons.append(f"{one.signal} is not known: {one.reason}")
            elif one.says is Says.IDLE:
                found.way([_louder(one)])
                found.way([_lower_level(one)])
        if not found.ways and len(found.reasons) == 1:
            others = "demandQuery or demandPreset, activationWorkload or alerts"
            found.reasons.append(f"nothing else can: set {others}")
    if wanted > 1:
        found.reasons.append(
            "how many more than that there are to be, the HPA asks once the first is there"
        )


def _quieter(record: Record, one: Activation) -> Need:
    if one.value is None or one.threshold is None:
        return Need(
            of=one.signal, key=None, now=None, text=f"{one.signal} has to be idle: {one.reason}"
        )
    now = _number(one.value, record.unit if one.signal == "gpus" else "")
    if one.signal == "gpus":
        level = _number(one.threshold, record.unit)
        window = _setting(record, "activationWindow")
        text = (
            f"no GPU above activationThreshold {level} for activationWindow {window}: the busiest "
            f"showed {now}{_since(record, window)}"
        )
    else:
        text = f"the demand has to be at most {_number(one.threshold)} (is {now})"
    return Need(of=one.signal, key=None, now=one.value, at_most=one.threshold, text=text)


def _higher_level(record: Record, one: Activation) -> Need | None:
    key = _LEVELS.get(one.signal)
    if one.value is None or one.threshold is None or key is None:
        return None
    unit = record.unit if one.signal == "gpus" else ""
    text = f"{key} at least {_number(one.value, unit)} (is {_number(one.threshold, unit)})"
    return Need(of=one.signal, key=key, now=one.threshold, at_least=one.value, text=text)


def _louder(one: Activation) -> Need:
    if one.value is None or one.threshold is None:
        text = f"{one.signal} has to say active: {one.reason}"
        return Need(of=one.signal, key=None, now=None, text=text)
    text = f"the demand has to be above {_number(one.threshold)} (is {_number(one.value)})"
    return Need(of=one.signal, key=None, now=one.value, above=one.threshold, text=text)


def _lower_level(one: Activation) -> Need | None:
    key = _LEVELS.get(one.signal)
    if not one.value or one.threshold is None or key is None:  # no level is below 0
        return None
    text = f"{key} below {_number(one.value)} (is {_number(one.threshold)})"
    return Need(of=one.signal, key=key, now=one.threshold, below=one.value, text=text)


_LEVELS = {"gpus": "activationThreshold", "demand": "demandActivationThreshold"}
_MEASURED, _STARTING = PodState.MEASURED.name.lower(), PodState.STARTING.name.lower()
_AWAITED = frozenset(state.name.lower() for state in PodState) - {_MEASURED}
"""The states of pods whose load should be known, and is not."""
_IN_DOUBT = frozenset({State.UNKNOWN, State.PARTIAL, State.STARTING})


def _since(record: Record, window: str) -> str:
    """Return when a GPU was above the level last, and when that will have been long enough ago."""
    there = [pod for pod in record.pods if pod.state != "ended"]
    times = [gpu.active_at for pod in there for gpu in pod.gpus if gpu.active_at is not None]
    if not times:
        return ""
    ago = max(0.0, record.at - max(times))
    try:
        said = f", and one was above it {durations.text(round(ago))} ago"
    except (ValueError, OverflowError):  # no scaler's times
        return ""
    try:
        left = round(durations.parse(window) - ago)
    except (ValueError, OverflowError):  # the window comes from the environment
        return said
    return f"{said}; without another it is idle in {durations.text(max(0, left))}"


# Between one and many


def _scale(record: Record, wanted: int, replicas: int, found: _Found) -> None:
    if record.active is False:
        found.reasons.append(
            "it is inactive: KEDA takes the last replica after its cooldownPeriod, whatever the "
            "HPA asks for, where minReplicaCount is 0 and no other trigger is active"
        )
    known = [one for one in record.metrics if _is_usable(one)]
    unknown = [one for one in record.metrics if not _is_usable(one)]
    asked = max((_asked(one, one.value) for one in known), default=None)
    if unknown and (asked is None or asked < replicas):
        asked = replicas
        held = "a metric without a value holds the replicas"
    else:
        held = "the metrics ask for it"
    if asked == wanted:
        found.so(f"{held}, at {_count(replicas)}")
        return
    if wanted > (asked or 0):
        found.reasons += [_without(one) for one in unknown]
        found.reasons += _missing(record) if unknown else []
        _raise(record, wanted, replicas, known, found)
    elif unknown or not _is_whole(record, replicas):
        found.reasons += [_without(one) for one in unknown]
        found.reasons += _held(record, replicas)
    else:
        _lower(record, wanted, known, found)


def _raise(
    record: Record, wanted: int, replicas: int, known: Sequence[Metric], found: _Found
) -> None:
    limit = rules.scale_up_limit(replicas)
    if wanted > limit:
        found.reasons.append(
            f"without other policies the HPA goes from {replicas} to at most {limit} at once"
        )
    for one in known:
        least = _least(one, wanted)
        asked = _asked(one, least / _MILLI)
        change = _load(record, one, (least - 1) / _MILLI, is_raised=True)
        if asked != wanted:
            found.reasons.append(_skipped(one, wanted, asked))
        elif _is_impossible(record, one, change):
            found.reasons.append(f"no load of the pods that there are is enough: {change.text}")
        else:
            found.way([change])
    for one in known:
        found.way([_target(record, one, wanted, is_raised=True)])


def _lower(record: Record, wanted: int, known: Sequence[Metric], found: _Found) -> None:
    """All metrics that ask for more have to fall, and one of them or another has to ask for it."""
    more = [one for one in known if _asked(one, one.value) > wanted]
    falls = [(one, (_least(one, wanted + 1) - 1) / _MILLI) for one in more]
    reached = {_asked(one, most) for one, most in falls}
    if wanted in reached | {_asked(one, one.value) for one in known}:
        found.way(_load(record, one, most, is_raised=False) for one, most in falls)
    else:
        found.reasons += [_skipped(one, wanted, max(reached)) for one in more]
    if any(pod.state == "ended" for pod in record.pods):
        found.reasons.append("a lower value is held for a while after a pod has ended")
    found.way(_target(record, one, wanted, is_raised=False) for one in more)


def _asked(one: Metric, value: float | None, target: float | None = None) -> int:
    """Return what the HPA would ask for, which is never less than 1."""
    step = rules.recommend(
        [
            rules.Metric(
                value=value,
                target=one.target if target is None else target,
                metric_type=rules.MetricType(one.metric_type),
            )
        ],
        rules.Scale.steady(one.replicas),
        rules.Tolerances(up=one.tolerance, down=one.tolerance),
    )
    return 1 if step is None else max(1, step.replicas)


def _least(one: Metric, enough: int) -> int:
    """Return the fewest thousandths of a value that asks for so many replicas, or more."""
    most = 2 * (max(enough, one.replicas) + 1) * rules.milli(one.target)
    return _first(lambda value: _asked(one, value) >= enough, most)


def _first(is_enough: Callable[[float], bool], most: int) -> int:
    """Return the fewest thousandths from which on something is so; `most` are enough."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle / _MILLI):
            high = middle
        else:
            low = middle + 1
    return low


def _load(record: Record, one: Metric, bound: float, *, is_raised: bool) -> Need:
    is_demand, words = one.name == METRIC_NAME, "above" if is_raised else "at most"
    unit = "" if is_demand else record.unit
    text = f"{words} {_number(bound, unit)} (is {_number(one.value, unit)})"
    if is_demand:
        text = f"the demand has to be {text}"
    elif one.metric_type == rules.MetricType.VALUE:
        text = f"the average load has to be {text}"
    else:
        aggregation = _setting(record, "aggregation")
        by, average = (
            ("", "on average ") if aggregation not in _RAISING else (f" by {aggregation}", "")
        )
        counted = one.replicas if not by else max(1, min(_counted(record), one.replicas))
        each, now = bound / counted, (one.value or 0.0) / counted
        text = f"the load of all replicas{by} has to be {text}: {average}{words} "
        text += f"{_rounded(each, unit)} each (is {_rounded(now, unit)})"
    if is_raised:
        return Need(of=one.name, key=None, now=one.value, above=bound, text=text)
    return Need(of=one.name, key=None, now=one.value, at_most=bound, text=text)


def _is_impossible(record: Record, one: Metric, change: Need) -> bool:
    is_load = one.name != METRIC_NAME and record.unit == "%"
    if not is_load or _setting(record, "gpuAggregation") == "sum" or change.above is None:
        return False
    replicas = one.replicas if one.metric_type == rules.MetricType.AVERAGE_VALUE else 1
    # Full ones ask for more than they show.
    most = _MOST_PERCENT if _setting(record, "signal") == Signal.MEMORY else FULL
    return change.above >= most * replicas


def _target(record: Record, one: Metric, wanted: int, *, is_raised: bool) -> Need | None:
    """Return the nearest target at which the value asks for so many; None: none is known."""
    is_demand = one.name == METRIC_NAME
    if not is_demand and not _is_plain(record, one):
        return None
    most = 2 * rules.milli(one.value or 0.0) * one.replicas + 1
    enough = wanted if is_raised else wanted + 1
    # The larger the target, the fewer are asked for; a target of 0 is none.
    found = _first(lambda target: target > 0 and _asked(one, one.value, target) < enough, most)
    found -= is_raised
    if found <= 0 or _asked(one, one.value, found / _MILLI) != wanted:
        return None
    target, unit = found / _MILLI, "" if is_demand else record.unit
    is_bounded = unit == "%" and _setting(record, "gpuAggregation") != "sum"
    if is_bounded and target > REACHABLE_PERCENT:
        return None
    key = "demandThreshold" if is_demand else "threshold"
    words = "at most" if is_raised else "at least"
    text = f"{key} {words} {_number(target, unit)} (is {_number(one.target, unit)})"
    if is_raised:
        return Need(of=one.name, key=key, now=one.target, at_most=target, text=text)
    return Need(of=one.name, key=key, now=one.target, at_least=target, text=text)


def _is_usable(one: Metric) -> bool:
    """Tell whether the HPA can count with a metric; a record may come from anywhere."""
    return (
        one.value is not None
        and is_countable(one.value)
        and is_countable(one.target)
        and rules.milli(one.target) > 0
        and 0 <= one.tolerance < 1
        and one.replicas > 0
        and one.metric_type in set(rules.MetricType)
    )


def _is_plain(record: Record, one: Metric) -> bool:
    """Tell whether the value is what the pods that count do, and nothing that depends on targets.

    Replicas that work unseen, or have just left, count by the target.
    """
    loads: dict[str, list[float]] = defaultdict(list)
    for pod in record.pods:
        if pod.load is not None:
            loads[pod.replica].append(pod.load)
    known = [sum(group) / len(group) for group in loads.values()]
    total, aggregation = sum(known), _setting(record, "aggregation")
    if aggregation in _RAISING:
        raised = load.outstanding(Aggregation(aggregation), known)
        total = max(total, min(len(known), one.replicas) * raised)
    counted = len(loads) if one.metric_type == rules.MetricType.VALUE else 1
    is_sum = one.value is not None and abs(one.value - total / max(1, counted)) < 1 / _MILLI
    return is_sum and _is_whole(record, one.replicas)


def _is_whole(record: Record, replicas: int) -> bool:
    """Tell whether a lower value would be an answer, and not only a lower bound."""
    return record.state == State.MEASURED and _counted(record) >= replicas


def _counted(record: Record) -> int:
    """Return how many replicas count; of pods that are not listed, where each pod is one."""
    counted = {pod.replica for pod in record.pods if pod.counts}
    is_pod = all(pod.replica == pod.name for pod in record.pods)
    pods = {one.state: one.pods for one in record.pod_counts}
    return max(len(counted), pods.get(_MEASURED, 0)) if is_pod else len(counted)


def _held(record: Record, replicas: int) -> Iterator[str]:
    """Yield why fewer replicas are not asked for, whatever the others do."""
    if record.state != State.MEASURED:
        yield f"it is {record.state}: {record.reason}"
    counted = _counted(record)
    if counted < replicas:
        yield f"the load of {counted} of {_count(replicas)} is known: fewer are not asked for"
    yield from _missing(record)


def _missing(record: Record) -> Iterator[str]:
    """Yield the pods whose load is not known, and why."""
    if record.source.trouble is not None:
        yield record.source.trouble
    pods = [pod for pod in record.pods if _is_awaited(pod)]
    for pod in pods[:_SHOWN_PODS]:
        yield f"pod {pod.name}: {pod.reason}"
    all_of_them = sum(one.pods for one in record.pod_counts if one.state in _AWAITED)
    left = max(len(pods), all_of_them) - _SHOWN_PODS
    if left > 0:
        yield f"and {left} more pods"


def _is_awaited(pod: Pod) -> bool:
    return not pod.counts and pod.state in _AWAITED


def _without(one: Metric) -> str:
    return f"{one.name} has no value, which holds the replicas"


def _skipped(one: Metric, wanted: int, instead: int) -> str:
    return (
        f"no value of {one.name} asks for {wanted} at {_count(one.replicas)}: within "
        f"{_number(100 * one.tolerance, '%')} of its target nothing changes, and beyond that it "
        f"asks for {instead}"
    )


def _setting(record: Record, key: str) -> str:
    return next((one.value for one in record.settings if one.key == key), "")


def _count(replicas: int) -> str:
    return f"{replicas} replica" if replicas == 1 else f"{replicas} replicas"


def _rounded(value: float, unit: str) -> str:
    return f"{value:.6g} {unit}".rstrip()


def _number(value: float | None, unit: str = "") -> str:
    shown = "-" if value is None else f"{value:.10g}"
    return f"{shown} {unit}".rstrip()
