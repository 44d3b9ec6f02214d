"""What a trigger asks for, key by key, with the defaults made explicit. Pure."""

from collections.abc import Collection, Iterator

from keda_gpu_scaler.record.record import Origin, Setting
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import AVERAGED_WINDOW_SECONDS, WINDOW_SECONDS, TriggerSpec
from keda_gpu_scaler.trigger import KEYS
from keda_gpu_scaler.trigger.keys import FROM_ENV

_USUAL_WINDOW = (
    f"{durations.text(WINDOW_SECONDS)}; {durations.text(AVERAGED_WINDOW_SECONDS)} where the "
    "exporter's number is itself an average"
)
HIDDEN = "from the environment, not shown"


def is_hidden(key: str, given: Collection[str]) -> bool:
    """Tell whether a key's value comes from the environment of the target: it may be a secret."""
    return key + FROM_ENV in given


def settings(spec: TriggerSpec) -> tuple[Setting, ...]:
    """Return each key that the trigger has a value for, in the order of the documentation."""
    values = dict(_values(spec))
    return tuple(
        Setting(key, HIDDEN if is_hidden(key, spec.given) else values[key], _origin(spec, key))
        for key in KEYS
        if key in values
    )


def _origin(spec: TriggerSpec, key: str) -> Origin:
    if is_hidden(key, spec.given):
        return Origin.ENVIRONMENT
    return Origin.TRIGGER if key in spec.given else Origin.DEFAULT


def _values(spec: TriggerSpec) -> Iterator[tuple[str, str]]:
    yield "workload", spec.workload
    yield "namespace", spec.pods.namespace
    if spec.query is not None:
        yield "query", spec.query.text
    else:
        yield "profile", spec.profile
    yield "signal", spec.signal
    yield "threshold", f"{spec.threshold:g}"
    yield "aggregation", spec.aggregation
    yield "gpuAggregation", spec.gpu_aggregation
    own = spec.window_seconds
    yield "window", _USUAL_WINDOW if own is None else durations.text(own)
    yield "activationThreshold", f"{spec.activation_threshold:g}"
    yield "activationWindow", durations.text(spec.activation_window_seconds)
    if spec.neighbour is not None:
        yield "activationWorkload", str(spec.neighbour)
    if spec.demand is not None:
        yield "demandQuery", spec.demand.text
        yield "demandActivationThreshold", f"{spec.demand.activation_threshold:g}"
        if spec.demand.threshold is not None:
            yield "demandThreshold", f"{spec.demand.threshold:g}"
        yield "demandOnEmpty", spec.demand.on_empty
    yield "startTimeout", durations.text(spec.start_timeout_seconds)
    yield "warmup", durations.text(spec.warmup_seconds)
    yield "onUnknown", spec.on_unknown
    yield "maxAge", durations.text(spec.max_age_seconds)
    yield "source", spec.source
    yield "metricName", spec.metric_name
