"""From the strings of a trigger's metadata to a TriggerSpec, or to every mistake in them at once.

Pure: no clock, I/O or logging. No other package reads metadata. A rule for more than one key, or
for the ScaledObject itself, applies only if each key that it compares is valid by itself, so that
one mistake is reported once.

The message reaches KEDA's log through a gRPC trailer: it is short and in ASCII, quotes what the
user wrote, and never shows a value that may be a secret. A parser of a value raises ValueError with
what it expected, in words that follow "expected"; it never repeats the value.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeVar

from keda_gpu_scaler import errors, promql
from keda_gpu_scaler.demand import presets
from keda_gpu_scaler.demand.presets import Preset
from keda_gpu_scaler.promql import placeholders
from keda_gpu_scaler.query import influxql, profiles
from keda_gpu_scaler.query.promql_texts import LONGEST_BYTES
from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.spec.spec import (
    DEMAND_METRIC,
    TOO_LARGE,
    Aggregation,
    DemandSpec,
    GpuAggregation,
    OnEmpty,
    OnUnknown,
    OwnQuery,
    ScaledObject,
    Signal,
    TriggerSpec,
    is_countable,
)
from keda_gpu_scaler.spec.workload import PodSelector, ScaleTarget
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS, hint, is_of_keda

EVERY_POD = "every pod of the query"
"""The workload's name where a query comes without workload and podPattern."""
REACHABLE_PERCENT = 90
"""The HPA ignores deviations up to 10 %: at full load, 100/91 still counts as on target."""
_COMFORTABLE_PERCENT = 80
IDLE_PERCENT = 2.0
"""Idle cards show blips of 1 and 2 %."""
NO_USUAL_LEVEL = frozenset(
    {Signal.MEMORY, Signal.MEMORY_USED, Signal.POWER, Signal.TEMPERATURE, Signal.NUMBER}
)
"""A loaded model keeps these up without work: only the user knows from which level on it works."""
_SOME_SOURCES = "; sources are process settings, and some are for some namespaces only"
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SMALLEST_TARGET = 0.001
"""KEDA rounds targets to thousandths; a smaller one would become 0."""
METRIC_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_METRIC_NAME_LIMIT = 200
_LISTED_NAMES = 20
_MODEL_LIMIT = 256
_KEYS_LIMIT = 64
_VALUE_LIMIT = 4096
_MESSAGE_LIMIT = 4000
"""Bytes in the trailer; gRPC implementations refuse trailers of 8 KiB and more in total."""
_SHOWN_CHARACTERS = 100

T = TypeVar("T")
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


def parse(scaled_object: ScaledObject, metadata: Mapping[str, str], access: Access) -> TriggerSpec:
    """Return what a trigger asks for, from all of its metadata as KEDA forwards it.

    Raises:
        errors.SpecError: the trigger is wrong; the message lists every mistake.
    """
    reader = _Reader(scaled_object, metadata)
    # A wrong value is replaced by a stand-in, so that all mistakes are reported together.
    measured = _measured(reader, access)
    signal, source = _signal(reader), _source(reader, access)
    query = _query(reader, access, measured, source)
    profile = _profile(reader, signal)
    is_added_up = signal in {Signal.MEMORY_USED, Signal.POWER}
    usual = GpuAggregation.SUM if is_added_up else GpuAggregation.AVERAGE
    gpu_aggregation = reader.read("gpuAggregation", _choice(GpuAggregation), usual)
    # A replica's load is at most 100.
    is_bounded = signal.is_percentage and gpu_aggregation is not GpuAggregation.SUM
    activation = _activation_threshold(reader, signal)
    aggregation = reader.read("aggregation", _choice(Aggregation), Aggregation.SUM)
    demand = _demand(reader, access, source, aggregation, measured)
    is_by_demand = "threshold" not in reader.given
    if is_by_demand and demand is not None:
        threshold, metric_name = demand.threshold or 0.0, DEMAND_METRIC
        _refuse_keys_of_load(reader)
    else:
        threshold = _threshold(reader, is_bounded=is_bounded)
        metric_name = reader.read("metricName", _valid_metric_name, f"gpu-{signal}")
    spec = TriggerSpec(
        pods=measured.pods,
        workload=measured.name,
        signal=signal,
        profile=profile if query is None else query.name,
        threshold=threshold,
        aggregation=aggregation,
        gpu_aggregation=gpu_aggregation,
        window_seconds=reader.read("window", _window, None),
        activation_threshold=activation,
        activation_window_seconds=reader.read("activationWindow", _window, 0.0),
        start_timeout_seconds=reader.read("startTimeout", _timeout, 0.0),
        warmup_seconds=reader.read("warmup", _warmup, 0.0),
        on_unknown=reader.read("onUnknown", _choice(OnUnknown), OnUnknown.HOLD),
        max_age_seconds=reader.read("maxAge", _window, 0.0),
        source=source,
        query=query,
        only_shown=measured.name == EVERY_POD,
        metric_name=metric_name,
        neighbour=_neighbour(reader, measured.pods),
        demand=demand,
        is_by_demand=is_by_demand,
        for_formula=_for_formula(reader, demand, is_by_demand=is_by_demand),
        given=tuple((written, metadata[written]) for written in reader.given.values()),
    )
    reader.raise_mistakes()
    return replace(spec, warnings=tuple(_warnings(spec, is_bounded=is_bounded)))


class _Reader:
    """The metadata of one trigger, read key by key; a wrong value is noted and replaced."""

    def __init__(self, scaled_object: ScaledObject, metadata: Mapping[str, str]) -> None:
        self._scaled_object, self._metadata = scaled_object, metadata
        self.namespace = scaled_object.namespace
        """The ScaledObject's namespace, or a valid stand-in where it is wrong."""
        self._mistakes: list[errors.Mistake] = []
        self._wrong: set[str] = set()
        self.given: dict[str, str] = {}
        """The known keys that are given, each with how it is written, `FromEnv` included."""
        if not workload.is_namespace(self.namespace):
            shown = _quoted(self.namespace)
            self._note("", f"the ScaledObject's namespace {shown}", "expected a namespace")
            self._wrong.add("namespace")
            self.namespace = "default"
        if not workload.is_name(scaled_object.name):
            shown = _quoted(scaled_object.name)
            self._note("", f"the ScaledObject's name {shown}", "expected a Kubernetes name")
        if len(metadata) > _KEYS_LIMIT:
            self._note("", f"{len(metadata)} keys", f"expected at most {_KEYS_LIMIT}")
            self.raise_mistakes()
        for written in sorted(metadata):
            key = written.removesuffix(FROM_ENV)
            if key not in KEYS:
                if not is_of_keda(written):
                    self._note(written, f"{_quoted(written)}: unknown key", hint(written))
            elif key in self.given:
                self.refuse(key, f"{written} is set too; keep one")
            else:
                self.given[key] = written
                if len(metadata[written]) > _VALUE_LIMIT:
                    self.refuse(key, f"expected at most {_VALUE_LIMIT} characters")

    def is_sound(self, *keys: str) -> bool:
        return self._wrong.isdisjoint(keys)

    def read(self, key: str, parser: Callable[[str], T], instead: T) -> T:
        """Return the parsed value of a key, or of its default.

        `parser` raises ValueError with what it expected. `instead` stands for no value and for a
        wrong one, so that reading can go on.
        """
        text = KEYS[key].default
        if key in self.given:
            text = self._metadata[self.given[key]].strip()
        if text is None or key in self._wrong:
            return instead
        try:
            return parser(text)
        except ValueError as expectation:
            self.refuse(key, f"expected {expectation}")
            return instead

    def refuse(self, key: str, why: str) -> None:
        self._wrong.add(key)
        written, default = self.given.get(key, key), KEYS[key].default
        value = self._metadata.get(written)
        if value is None:
            shown = "not given" if default is None else f"{_quoted(default)} (default)"
        elif written.endswith(FROM_ENV):
            shown = f"a value of {len(value)} characters from the environment"
        else:
            shown = _quoted(value)
        self._note(written, f"{written}: {shown}", why)

    def refuse_given(self, keys: Iterable[str], why: str) -> None:
        """Refuse those of these keys that are given, unless something else is wrong with them."""
        for key in keys:
            if key in self.given and self.is_sound(key):
                self.refuse(key, why)

    def raise_mistakes(self) -> None:
        """Raise one SpecError with all mistakes, if there are any.

        Its message has a line for each mistake, and the number of those that are past the limit.
        """
        if not self._mistakes:
            return
        count = durations.counted(len(self._mistakes), "mistake")
        namespace, name = map(_escaped, self._scaled_object)
        lines = [f"{count} in the trigger of ScaledObject {namespace}/{name}:"]
        room = _MESSAGE_LIMIT - _bytes_sent(lines[0])
        for number, mistake in enumerate(self._mistakes):
            line = f"- {mistake.what}; {mistake.advice}"
            line = line.encode("ascii", "backslashreplace").decode("ascii")
            room -= _bytes_sent(line)
            if room < 0:
                lines.append(f"... and {len(self._mistakes) - number} more")
                break
            lines.append(line)
        raise errors.SpecError("\n".join(lines), tuple(self._mistakes))

    def _note(self, key: str, what: str, advice: str) -> None:
        self._mistakes.append(errors.Mistake(key, what, advice))


def _bytes_sent(line: str) -> int:
    """Return a line's bytes in a gRPC trailer, which writes `%` and a line's end as three each."""
    return len(line) + 2 * line.count("%") + 3


def _quoted(value: str) -> str:
    """Return a value in quotes, with three dots if it is cut."""
    return f'"{_escaped(value)}"{"..." if len(value) > _SHOWN_CHARACTERS else ""}'


def _escaped(value: str) -> str:
    """Return the beginning of a value in ASCII, on one line."""
    text = value[:_SHOWN_CHARACTERS].encode("unicode_escape").decode("ascii")
    return text.replace('"', '\\"')[:200]


class _Measured(NamedTuple):
    """The pods that a trigger measures."""

    pods: PodSelector
    name: str
    """How logs and errors call them."""
    placeholders: promql.Values
    """What PromQL of the user's may have filled in."""


def _measured(reader: _Reader, access: Access) -> _Measured:
    namespace = _namespace(reader, access, "namespace", reader.namespace)
    owner = reader.read("workload", lambda text: workload.parse(text, namespace), None)
    pattern = reader.read("podPattern", lambda text: workload.PodPattern(namespace, text), None)
    names_them = "workload" in reader.given or "podPattern" in reader.given
    pods: PodSelector = pattern or owner or workload.PodPattern(namespace, ".*")
    name = str(owner or pods) if names_them else EVERY_POD
    if not names_them and "query" not in reader.given:
        pods = ScaleTarget(namespace)
        name = str(pods)
        if not access.knows_targets or namespace != reader.namespace:
            reader.refuse(
                "workload",
                "expected [kind/]name such as deployment/bert, or podPattern; with "
                "KEDA_GPU_SCALER_KUBERNETES=true it is the ScaledObject's scaleTargetRef, in its "
                "own namespace",
            )
    placeholders = promql.Values(namespace, "x", "x")  # where the keys behind them are wrong
    if reader.is_sound("workload", "podPattern", "namespace"):
        placeholders = promql.Values(
            namespace=namespace,
            workload=None if owner is None else owner.name,
            pod_pattern=pods.regex if names_them else None,
        )
    return _Measured(pods, name, placeholders)


def _namespace(reader: _Reader, access: Access, key: str, usual: str) -> str:
    """Return the namespace of pods; another one than the ScaledObject's has to be allowed."""
    namespace = reader.read(key, _valid_namespace, usual)
    if namespace not in {reader.namespace, usual} and namespace not in access.others:
        reader.refuse(
            key,
            "expected the ScaledObject's own; another one has to be in "
            "KEDA_GPU_SCALER_OTHER_NAMESPACES of the scaler",
        )
    return namespace


def _query(reader: _Reader, access: Access, measured: _Measured, source: str) -> OwnQuery | None:
    if "query" not in reader.given:
        return None
    _refuse_other_languages(reader, access, "query", source)
    policy, namespace, filled = access.own_promql, measured.pods.namespace, measured.placeholders
    return reader.read("query", lambda text: promql.own(text, policy, namespace, filled), None)


def _signal(reader: _Reader) -> Signal:
    """Return what is measured; with the user's own query a number, unless `signal` is given."""
    if "query" in reader.given and "signal" not in reader.given:
        return Signal.NUMBER
    given = reader.read("signal", _choice(Signal), Signal.UTILIZATION)
    if given is Signal.NUMBER and "query" not in reader.given:
        reader.refuse("signal", "expected one that exporters show; this one is for query")
    return given


def _source(reader: _Reader, access: Access) -> str:
    """Return the name of the source to ask; empty if the trigger names none that it may use."""
    names = access.source_names(reader.namespace)
    if names:
        return reader.read("source", _one_of(sorted(names), _SOME_SOURCES), "")
    reader.refuse("source", f"expected a source, of which none is set up here{_SOME_SOURCES}")
    return ""


def _refuse_other_languages(reader: _Reader, access: Access, key: str, source: str) -> None:
    if source in access.direct_sources:
        reader.refuse(
            key, f"expected a source that understands PromQL: {source} asks exporters directly"
        )
    if source in access.influxql_sources:
        reader.refuse(key, f"expected a source that understands PromQL: {source} is an InfluxDB")


def _profile(reader: _Reader, signal: Signal) -> str:
    if "query" in reader.given:
        reader.refuse_given(("profile",), "expected none beside query, which has all that is read")
        return profiles.AUTO
    name = reader.read("profile", _one_of(profiles.NAMES), profiles.AUTO)
    if profiles.metric_sources(name, signal):
        return name
    if not profiles.signals(name):
        reader.refuse("profile", "this exporter names no pod, so its numbers belong to no workload")
    elif reader.is_sound("signal", "profile"):
        reader.refuse("profile", f"it does not show {signal}; expected one that does, or auto")
    return name


def _threshold(reader: _Reader, *, is_bounded: bool) -> float:
    """Return the target per replica; the load must be able to exceed it by what the HPA ignores."""
    number = reader.read("threshold", _target, 0.0)
    if "threshold" not in reader.given:
        reader.refuse(
            "threshold",
            "expected the target per replica, such as 70, or a demand in its place: demandPreset, "
            "or demandQuery and demandThreshold",
        )
    is_limited = is_bounded and reader.is_sound("signal", "gpuAggregation", "threshold")
    if is_limited and number > REACHABLE_PERCENT:
        reader.refuse(
            "threshold",
            f"expected at most {REACHABLE_PERCENT} for a percentage: the HPA ignores deviations "
            "up to 10 %, so above that a replica at 100 % never calls for another",
        )
    return number


def _activation_threshold(reader: _Reader, signal: Signal) -> float:
    """Return the level above which a GPU counts as busy; some signals have no usual one."""
    needs_one = signal in NO_USUAL_LEVEL and reader.is_sound("signal")
    if needs_one and "activationThreshold" not in reader.given:
        why = "which a loaded model keeps up while it is idle"
        if signal is Signal.NUMBER:
            why = "of which only you know what an idle pod shows"
        reader.refuse(
            "activationThreshold",
            f"required for {signal}, {why}; expected a number a little above that level",
        )
    return reader.read("activationThreshold", _level, IDLE_PERCENT)


def _warnings(spec: TriggerSpec, *, is_bounded: bool) -> Iterator[str]:
    """Yield what is valid but likely a mistake, one sentence each, which begins with a key."""
    threshold, activation, demand = spec.threshold, spec.activation_threshold, spec.demand
    if not spec.is_by_demand and is_bounded and threshold > _COMFORTABLE_PERCENT:
        yield (
            f"threshold {threshold:g} leaves little room: a replica at 100 % counts as only "
            f"{100 / threshold:.2f} replicas, so scaling out goes in small steps"
        )
    if not spec.is_by_demand and activation >= threshold:
        yield (
            f"activationThreshold {activation:g} is not below threshold {threshold:g}: a workload "
            "that is on target can count as idle and be scaled to zero"
        )
    if demand is None:
        return
    if demand.threshold and demand.activation_threshold >= demand.threshold:
        yield (
            f"demandActivationThreshold {demand.activation_threshold:g} is not below "
            f"demandThreshold {demand.threshold:g}: a demand for a whole replica can count as none"
        )
    preset = presets.PRESETS.get(demand.preset)
    if spec.is_by_demand and preset is not None and preset.doubt_alone:
        yield f"demandPreset {preset.name} {preset.doubt_alone}"


_OF_PRESET = ("demandRouter", "demandRouterNamespace", "demandModel")
_OWN_QUERY = Preset(name="", added=(), threshold=None)
"""In place of a preset: a query of the user's own, or a preset that does not exist."""


def _refuse_keys_of_load(reader: _Reader) -> None:
    """Refuse what only shapes the number that the GPUs would scale by."""
    reader.refuse_given(
        ("aggregation", "gpuAggregation", "window", "metricName"),
        "expected threshold with it: without one the demand alone scales, and the GPUs only tell "
        "whether the workload still works",
    )
    if reader.read("onUnknown", _choice(OnUnknown), OnUnknown.HOLD) is OnUnknown.ZERO:
        reader.refuse(
            "onUnknown", "expected hold or error without threshold: no unknown demand is 0"
        )


def _neighbour(reader: _Reader, pods: PodSelector) -> PodSelector | None:
    """Return the pods of activationWorkload: their GPUs keep this workload active as well.

    They are in the namespace of `pods`, the measured ones.
    """
    key = "activationWorkload"
    if key not in reader.given:
        return None
    if "query" in reader.given:
        reader.refuse(
            key,
            "expected none with query, which shows only what it is written for; a demandQuery can "
            "ask about another workload",
        )
    neighbour_pods = reader.read(key, lambda text: workload.parse(text, pods.namespace), None)
    if neighbour_pods == pods:
        reader.refuse(
            key, "expected another workload: the GPUs of this one keep it active by themselves"
        )
    return neighbour_pods


def _demand(
    reader: _Reader, access: Access, source: str, aggregation: Aggregation, measured: _Measured
) -> DemandSpec | None:
    """Return what the trigger says of the demand; its other keys need a demandQuery or a preset."""
    preset = _OWN_QUERY
    if "demandPreset" in reader.given:
        preset = _preset(reader, access, source)
        router, text = _preset_text(reader, access, preset, measured.pods)
    else:
        reader.refuse_given(_OF_PRESET, "expected demandPreset with it")
        if "demandQuery" not in reader.given:
            reader.refuse_given(
                ("demandActivationThreshold", "demandThreshold", "demandOnEmpty"),
                "expected demandQuery or demandPreset with it",
            )
            return None
        router, text = None, _query_text(reader, access, source, measured)
    empty = OnEmpty.ERROR if preset.wakes else OnEmpty.INACTIVE
    activation_threshold = reader.read("demandActivationThreshold", _level, 0.0)
    is_by_demand = "threshold" not in reader.given
    threshold = reader.read("demandThreshold", _target, preset.threshold)
    if is_by_demand and threshold is None and reader.is_sound("demandPreset", "demandThreshold"):
        reader.refuse(
            "demandThreshold",
            "expected the demand that one replica can serve: without threshold only it scales",
        )
    if is_by_demand and preset.never_alone and reader.is_sound("demandPreset"):
        reader.refuse(
            "demandPreset",
            "expected threshold with it, or a preset that counts requests in work: "
            f"{preset.never_alone}, so busy ones would go",
        )
    if threshold is not None and aggregation is Aggregation.AVERAGE and not is_by_demand:
        reader.refuse(
            "demandThreshold",
            "expected aggregation: sum beside it: with metricType Value the HPA would multiply the "
            "demand by the replicas; or put the demand into a trigger of its own",
        )
    return DemandSpec(
        text=text,
        activation_threshold=activation_threshold,
        threshold=threshold,
        on_empty=reader.read("demandOnEmpty", _choice(OnEmpty), empty),
        preset=preset.name,
        wakes=preset.wakes,
        activates=preset.activates,
        router=router,
    )


def _for_formula(reader: _Reader, demand: DemandSpec | None, *, is_by_demand: bool) -> bool:
    """Return whether a formula uses the trigger; it knows one number of each."""
    is_used = reader.read("forFormula", _one_of(("true", "false")), "false") == "true"
    if is_used and demand is not None and demand.threshold is not None and not is_by_demand:
        reader.refuse(
            "forFormula",
            "expected threshold or a demand that scales, not both: a formula uses one number of "
            "each trigger; give the demand a trigger of its own",
        )
    return is_used


def _query_text(reader: _Reader, access: Access, source: str, measured: _Measured) -> str:
    """Return the expression as it is sent, confined to the ScaledObject's own namespace."""
    policy, namespace, filled = access.own_promql, reader.namespace, measured.placeholders
    if source not in access.influxql_sources:
        _refuse_other_languages(reader, access, "demandQuery", source)
        return reader.read(
            "demandQuery", lambda text: promql.number(text, policy, namespace, filled), ""
        )
    if policy is not promql.Policy.ALLOW:
        reader.refuse(
            "demandQuery",
            "InfluxQL cannot be confined to a namespace; expected KEDA_GPU_SCALER_OWN_PROMQL=allow "
            "of the scaler, or a source that understands PromQL",
        )
    text = reader.read("demandQuery", influxql.selection, "")
    if placeholders.are_in(text):
        reader.refuse(
            "demandQuery",
            "InfluxQL is not parsed, so that nothing can be filled in safely; expected the names "
            "themselves in place of placeholders",
        )
    return text


def _preset(reader: _Reader, access: Access, source: str) -> Preset:
    """Return the preset. Its PromQL is the scaler's, so no policy for that of users applies."""
    if "demandQuery" in reader.given:
        reader.refuse("demandPreset", "demandQuery is set too; keep one")
    else:
        _refuse_other_languages(reader, access, "demandPreset", source)
    name = reader.read("demandPreset", _one_of(presets.NAMES), "")
    if not name:
        return _OWN_QUERY
    preset = presets.PRESETS[name]
    if preset.is_of_router and "demandRouter" not in reader.given:
        reader.refuse("demandRouter", "expected [kind/]name such as deployment/llama-epp")
    if preset.needs_model and "demandModel" not in reader.given:
        reader.refuse("demandModel", "expected the name of a model as requests write it")
    if preset.needs_threshold and "demandThreshold" not in reader.given:
        reader.refuse("demandThreshold", f"required for {name}; expected {preset.needs_threshold}")
    if preset.needs_pods and "workload" not in reader.given and "podPattern" not in reader.given:
        reader.refuse("demandPreset", "expected workload or podPattern with it")
    for keys, is_read, why in (
        (_OF_PRESET, preset.is_of_router, "is of the workload's own pods"),
        (("demandModel",), preset.model_label, "does not tell models apart"),
        (
            ("demandActivationThreshold", "demandOnEmpty"),
            preset.activates,
            "does not tell whether a workload is in use",
        ),
    ):
        if not is_read:
            reader.refuse_given(keys, f"expected none: {name} {why}")
    return preset


def _preset_text(
    reader: _Reader, access: Access, preset: Preset, pods: PodSelector
) -> tuple[workload.Workload | None, str]:
    """Return the router and the expression of a preset; if it is wrong, only its keys are read."""
    namespace = _namespace(reader, access, "demandRouterNamespace", pods.namespace)
    router = reader.read("demandRouter", lambda text: workload.parse(text, namespace), None)
    model = reader.read("demandModel", _valid_model, "")
    if preset is _OWN_QUERY:
        return None, ""
    selector = router if preset.is_of_router else pods
    text = "" if selector is None else presets.promql(preset, selector, pods, model)
    if len(text.encode()) > LONGEST_BYTES:
        reader.refuse("demandPreset", "its query is too long; expected a shorter podPattern")
    return router, text


def _target(text: str) -> float:
    """Return a threshold that KEDA can pass on: above 0, also after it rounds to thousandths."""
    number = _decimal(text)
    if not _SMALLEST_TARGET <= number < TOO_LARGE:
        raise ValueError("a number from 0.001 to below 2^53, such as 70")
    return number


def _level(text: str) -> float:
    """Return a level to compare activity with: 0 or above."""
    number = _decimal(text)
    if not is_countable(number):
        raise ValueError("a number from 0 to below 2^53, such as 5")
    return number


def _decimal(text: str) -> float:
    """Return a decimal number; refuse what else `float` accepts, such as nan and 1_0."""
    if not NUMBER.fullmatch(text):
        raise ValueError("a number without a unit, such as 70")
    return float(text)


def _duration(smallest: float, largest: float, text: str) -> float:
    seconds = durations.parse(text)
    if not smallest <= seconds <= largest:
        limits = f"from {durations.text(smallest)} to {durations.text(largest)}"
        raise ValueError(f"a duration {limits}, such as 2m")
    return seconds


_LARGEST_WINDOW_SECONDS = 3600.0
"""A snapshot holds every point of its longest window for every GPU."""
_window = partial(_duration, 1, _LARGEST_WINDOW_SECONDS)
_warmup = partial(_duration, 0, _LARGEST_WINDOW_SECONDS)
_timeout = partial(_duration, 1, durations.DAY_SECONDS)
"""May be long, as it needs no samples in memory."""


def _choice(kind: type[ChoiceT]) -> Callable[[str], ChoiceT]:
    def chosen(text: str) -> ChoiceT:
        return kind(_one_of(tuple(kind))(text))

    return chosen


def _one_of(names: Collection[str], note: str = "") -> Callable[[str], str]:
    """Return the parser of one of these names; the note is for who writes another."""

    def named(text: str) -> str:
        if text in names:
            return text
        more = len(names) - _LISTED_NAMES
        listed = ", ".join(list(names)[:_LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")
        meant = errors.nearest(text.lower(), names)
        hint = f" (did you mean {meant}?)" if meant else ""
        raise ValueError(f"one of {listed}{hint}{note}")

    return named


def _valid_model(text: str) -> str:
    if not (text.isprintable() and 0 < len(text) <= _MODEL_LIMIT):
        raise ValueError(
            f"the name of a model as requests write it, at most {_MODEL_LIMIT} characters"
        )
    return text


def _valid_namespace(text: str) -> str:
    if not workload.is_namespace(text):
        raise ValueError("a namespace: lower-case letters, digits and '-', at most 63 characters")
    return text


def _valid_metric_name(text: str) -> str:
    """Return a name that the external metrics API and KEDA accept unchanged."""
    if len(text) > _METRIC_NAME_LIMIT or not METRIC_NAME.fullmatch(text):
        raise ValueError(
            "letters, digits, '-', '_' and '.', a letter or digit at both ends, "
            f"at most {_METRIC_NAME_LIMIT} characters, such as gpu-load; or no such key"
        )
    if re.match("s[0-9]+-", text):
        raise ValueError("a name without an index such as s0- before it: KEDA adds that itself")
    if text.lower() == DEMAND_METRIC:  # KEDA compares them without regard to case
        raise ValueError("another name: this one is that of the demand")
    return text
