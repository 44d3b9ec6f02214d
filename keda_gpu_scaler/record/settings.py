"""What a trigger asks for, key by key, with the defaults made explicit. Pure."""

from collections.abc import Iterator

from keda_gpu_scaler.record.record import Origin, Setting
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import AVERAGED_WINDOW_SECONDS, WINDOW_SECONDS, TriggerSpec
from keda_gpu_scaler.trigger import KEYS
from keda_gpu_scaler.trigger.keys import FROM_ENV

_DEFAULT_WINDOW = (
    f"{durations.text(WINDOW_SECONDS)}; {durations.text(AVERAGED_WINDOW_SECONDS)} where the "
    "exporter's number is itself an average"
)
HIDDEN = "from the environment, not shown"


def is_hidden(spec: TriggerSpec, key: str) -> bool:
    """Tell whether a key's value comes from the environment of the target: it may be a secret."""
    return any(written == key + FROM_ENV for written, _ in spec.given)


def settings(spec: TriggerSpec) -> tuple[Setting, ...]:
    """Return each key that has a value, in the order of the documentation.

    What the user wrote is shown as it was written, and of what was not written the default.
    """
    written, defaults = dict(spec.given), dict(_defaults(spec))
    shown: list[Setting] = []
    for key in KEYS:
        if is_hidden(spec, key):
            shown.append(Setting(key, HIDDEN, Origin.ENVIRONMENT))
        elif key in written:
            shown.append(Setting(key, written[key], Origin.TRIGGER))
        elif key in defaults:
            shown.append(Setting(key, defaults[key], Origin.DEFAULT))
    return tuple(shown)


def _defaults(spec: TriggerSpec) -> Iterator[tuple[str, str]]:
    """Yield the value of each key that may be left out."""
    yield "workload", spec.workload
    yield "namespace", spec.pods.namespace
    yield "signal", spec.signal
    if spec.query is None:
        yield "profile", spec.profile
    yield "aggregation", spec.aggregation
    yield "gpuAggregation", spec.gpu_aggregation
    yield "window", _DEFAULT_WINDOW
    yield "activationThreshold", f"{spec.activation_threshold:g}"
    yield "activationWindow", durations.text(spec.activation_window_seconds)
    if spec.demand is not None:
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
