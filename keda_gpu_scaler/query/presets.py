"""Presets of the demand: signals of LLM servers and routers, by the names of all their releases.

Pure data, and the PromQL made of it; the documentation's table says what each counts, and is
compared with the data. A preset reads the pods of one owner alone: the workload's own, or those of
the router that the trigger names. A pod may show one number under two names (a release renamed it
and shows both) and in two jobs; it counts once. A pod is found by `pod` and `namespace`, or by
`exported_pod` and `exported_namespace` where another target shows its series.

Nothing here makes 0 of a series that is missing. Only a router that shows something else, which it
shows with and without requests, and not in releases without the series, is known to have none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keda_gpu_scaler.query.promql_texts import quoted
from keda_gpu_scaler.spec.workload import PodSelector


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of one pod, under the names that have the same labels."""

    names: tuple[str, ...]
    """With `_` for `:` as well: what escapes names to that of a label stores them so."""
    since: str
    """The releases that show it."""
    labels: tuple[str, ...] = ()
    """What tells its series of one pod apart, where they are to be added up."""
    always: tuple[str, ...] = ()
    """Of a counter, of which is read what it gained in the last minute, per second: metrics that
    its server shows from its start on. Missing beside one of them, it had not begun; missing
    without them, the scrape was missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One preset: what is added up, and what one replica can serve of it."""

    name: str
    added: tuple[tuple[Metric, ...], ...]
    """Each is one quantity by its metrics of all releases; the first that a pod shows counts."""
    threshold: float | None
    """The usual `demandThreshold`; None: it depends on the model, and without one the demand only
    wakes."""
    only_waiting: bool = False
    """It is 0 as soon as the replicas keep up: no reason to keep one of them."""
    wakes: bool = False
    """What it shows while the workload has no pods says when there is work."""
    idle: tuple[str, ...] = ()
    """Metrics that a router shows without requests as well, and only if it counts them: with one of
    these, no series means 0."""
    model_label: str = ""
    """The label of a router's series that names the model; empty: the workload's own pods."""
    needs_model: bool = False
    """Its router may serve several workloads, so the model has to be named."""

    @property
    def is_of_router(self) -> bool:
        return bool(self.model_label)


def _spelt(*names: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(spelling for name in names for spelling in (name, name.replace(":", "_")))
    )


_ENGINE = ("model_name", "engine")
_VLLM_WAITING = (Metric(_spelt("vllm:num_requests_waiting"), "0.3 and later", _ENGINE),)
_VLLM_RUNNING = (Metric(_spelt("vllm:num_requests_running"), "0.3 and later", _ENGINE),)
_RANK = ("model_name", "engine_type", "dp_rank")
"""Ranks of one tensor or pipeline group show the same requests; those of data parallelism do not.

`priority` is left out: the row without one is the sum of the others, and the largest."""
_SGLANG_WAITING = (Metric(_spelt("sglang:num_queue_reqs"), "0.4 and later", _RANK),)
_SGLANG_RUNNING = (Metric(_spelt("sglang:num_running_reqs"), "0.4 and later", _RANK),)
_TGI_WAITING = (Metric(("tgi_queue_size",), "0.3 and later"),)
_TGI_RUNNING = (Metric(("tgi_batch_current_size",), "0.3 and later"),)
_TRITON_WAITING = (
    Metric(("nv_inference_pending_request_count",), "23.09 and later", ("model", "version")),
)
_KNATIVE = (
    Metric(("kn_serving_queue_depth",), "1.20.1 and later"),
    Metric(("kn_queueproxy_depth",), "1.19.0 to 1.20.0"),
    Metric(("revision_queue_depth",), "to 1.18"),
)
_FLOW = ("fairness_id", "priority", "inference_pool", "model_name", "target_model_name")
_EPP_WAITING = (
    Metric(("llm_d_epp_flow_control_queue_size",), "llm-d 0.9 and later", _FLOW),
    Metric(("inference_extension_flow_control_queue_size",), "from 1.1 of the extension", _FLOW),
)
_RUNNING = ("model_name", "target_model_name", "fairness_id", "priority")
_EPP_RUNNING = (
    Metric(("llm_d_epp_request_running",), "llm-d 0.9 and later", _RUNNING),
    Metric(("inference_objective_running_requests",), "from 1.1 of the extension", _RUNNING),
    Metric(("inference_model_running_requests",), "0.3 to 1.0 of the extension", _RUNNING),
)
_EPP_HOLDS = (
    "llm_d_epp_flow_control_pool_saturation",
    "inference_extension_flow_control_pool_saturation",
)
"""Shown where requests can be held at all: flow control is on."""
_EPP_RUNS = ("llm_d_epp_ready_endpoints", "inference_pool_ready_pods")
_ROUTER_RATE = (
    Metric(
        _spelt("vllm:num_incoming_requests_total"),
        "0.1.8 and later",
        ("model",),
        always=("router_cpu_usage_percent",),
    ),
)

_MISSED = "1h"
"""For how long a server that does not answer its scrapes is missed, as a pod with a GPU is."""
_WAITING = 5
"""What vLLM's production-stack takes, and the depth at which llm-d calls a server saturated."""
_AT_ONCE = 16
"""What llm-d's guide takes."""

_TABLE = (
    Preset(name="vllm-queue", added=(_VLLM_WAITING,), threshold=_WAITING, only_waiting=True),
    Preset(name="vllm-running", added=(_VLLM_RUNNING,), threshold=_AT_ONCE),
    Preset(name="vllm-requests", added=(_VLLM_WAITING, _VLLM_RUNNING), threshold=_AT_ONCE),
    Preset(name="sglang-queue", added=(_SGLANG_WAITING,), threshold=_WAITING, only_waiting=True),
    Preset(name="sglang-running", added=(_SGLANG_RUNNING,), threshold=_AT_ONCE),
    Preset(name="sglang-requests", added=(_SGLANG_WAITING, _SGLANG_RUNNING), threshold=_AT_ONCE),
    Preset(name="tgi-queue", added=(_TGI_WAITING,), threshold=_WAITING, only_waiting=True),
    Preset(name="tgi-requests", added=(_TGI_WAITING, _TGI_RUNNING), threshold=_AT_ONCE),
    Preset(name="triton-queue", added=(_TRITON_WAITING,), threshold=_WAITING, only_waiting=True),
    Preset(name="knative-requests", added=(_KNATIVE,), threshold=_AT_ONCE),
    Preset(
        name="llm-d-epp-queue",
        added=(_EPP_WAITING,),
        threshold=_WAITING,
        only_waiting=True,
        wakes=True,
        idle=_EPP_HOLDS,
        model_label="model_name",
    ),
    Preset(
        name="llm-d-epp-running",
        added=(_EPP_RUNNING,),
        threshold=_AT_ONCE,
        idle=_EPP_RUNS,
        model_label="model_name",
    ),
    Preset(
        name="llm-d-epp-requests",
        added=(_EPP_WAITING, _EPP_RUNNING),
        threshold=_AT_ONCE,
        wakes=True,
        idle=_EPP_HOLDS,
        model_label="model_name",
    ),
    Preset(
        name="vllm-router-rate",
        added=(_ROUTER_RATE,),
        threshold=None,
        wakes=True,
        model_label="model",
        needs_model=True,
    ),
)
PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _TABLE}
NAMES = tuple(PRESETS)


def promql(preset: Preset, pods: PodSelector, model: str = "") -> str:
    """Return the PromQL for one number.

    It has no row if none of the pods shows its part of it. `pods` are the workload's, or its
    router's. An empty `model` stands for every model.
    """
    matchers = f"{preset.model_label}={quoted(model)}" if model else ""
    totals = []
    for quantity in preset.added:
        rows = [row for metric in quantity for row in _by_pod(metric, pods, matchers)]
        if preset.idle:
            idle = Metric(preset.idle, "")
            rows += [f"0 * {row}" for row in _by_pod(idle, pods, "")]
        doubts = [_silent(quantity, pods)]
        for metric in quantity:
            if metric.always:
                doubts += _missed(metric, pods)
        totals.append(f"(sum({' or '.join(rows)}) unless on () ({' or '.join(doubts)}))")
    return " + ".join(totals)


def _silent(quantity: tuple[Metric, ...], pods: PodSelector) -> str:
    """Return the pods that have shown a quantity and do not answer their scrape any more.

    A server that is too busy to answer would be missing in the sum, which would then ask for fewer
    replicas: the sum is unknown instead. `last_over_time` keeps names, as two of them may have the
    same labels.
    """
    names = tuple(name for metric in quantity for name in metric.names)
    (shown, _), _ = _selectors(names, pods, "")
    namespace, regex = quoted(pods.namespace), quoted(pods.regex)
    up = f'up{{namespace={namespace},pod=~{regex},exported_pod=""}}'
    was = f"last_over_time({shown}[{_MISSED}]) and on (job, instance, pod) ({up} == 0)"
    return f"count(({was}) unless on (pod) {shown}) > 0"


def _missed(metric: Metric, pods: PodSelector) -> Iterator[str]:
    """Yield the counters that a minute ago were not there, though they may have counted already.

    They cannot be compared with 0, which would take all that they have ever counted for a rate.
    """
    always = _selectors(metric.always, pods, "")
    for (shown, _), (beside, _) in zip(_selectors(metric.names, pods, ""), always, strict=True):
        begun = f"{shown} unless {shown} offset 1m"
        labels = ", ".join(metric.labels)
        yield f"count({begun} unless ignoring ({labels}) {beside} offset 1m) > 0"


def _by_pod(metric: Metric, pods: PodSelector, matchers: str) -> Iterator[str]:
    """Yield what each pod shows of a metric, in either layout of the labels."""
    for selector, is_exported in _selectors(metric.names, pods, matchers):
        read = selector
        if metric.always:
            # A counter that has begun since, or was reset, is compared with 0.
            before = f"({selector} offset 1m <= {selector} or {selector} * 0)"
            read = f"({selector} - {before}) / 60"
        if is_exported:
            read = f'label_replace({read}, "pod", "$1", "exported_pod", "(.+)")'
        once = f"max by ({', '.join(('pod', *metric.labels))}) ({read})"
        yield f"sum by (pod) ({once})" if metric.labels else once


def _selectors(
    names: tuple[str, ...], pods: PodSelector, matchers: str
) -> Iterator[tuple[str, bool]]:
    """Yield the selector for pods that show a metric themselves, and for those shown by others."""
    same = "=" if len(names) == 1 else "=~"
    named = f"__name__{same}{quoted('|'.join(names))}"
    namespace, regex = quoted(pods.namespace), quoted(pods.regex)
    more = f",{matchers}" if matchers else ""
    yield f'{{{named},namespace={namespace},pod=~{regex},exported_pod=""{more}}}', False
    yield f"{{{named},exported_namespace={namespace},exported_pod=~{regex}{more}}}", True
