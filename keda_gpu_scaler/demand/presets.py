"""Presets of the demand: signals of LLM servers and routers, by the names of all their releases.

Pure data, and the PromQL made of it; the documentation's table says what each counts, and is
compared with the data. A preset reads the pods of one owner alone: the workload's own, or those of
the router that the trigger names. A pod may show one number under two names (a release renamed it
and shows both) and in two jobs; it counts once. A pod is found by `pod` and `namespace`, or by
`exported_pod` and `exported_namespace` where another target shows its series.

A router shows endpoints, which are servers or data-parallel ranks of them. Of those only the
workload's own count that the router has at that moment: a series of one that is gone does not.

Nothing here makes 0 of a series that is missing. Only a router that shows something else, which it
shows with and without requests, and not in releases without the series, is known to have none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keda_gpu_scaler.demand import known_metrics
from keda_gpu_scaler.demand.known_metrics import Known, MetricOwner
from keda_gpu_scaler.query.promql_texts import quoted
from keda_gpu_scaler.spec.workload import PodSelector


@dataclass(frozen=True, slots=True)
class PodMetric:
    """A metric of one pod, under the names that have the same labels."""

    names: tuple[str, ...]
    """With `_` for `:` as well: what escapes names to that of a label stores them so."""
    since: str
    """The releases that show it."""
    labels: tuple[str, ...] = ()
    """What tells its series of one pod apart, where they are to be added up."""
    matchers: str = ""
    """What selects its series among those of its name."""
    is_mean: bool = False
    """The number of a pod is the mean of these series, and not their sum."""
    endpoint: str = ""
    """The label that names an endpoint."""
    is_mean_of_pool: bool = False
    """It is a mean over the router's endpoints, of which each of the router's pods has all: it is
    multiplied by the number of the workload's, and the largest counts."""
    wrong_above_zero: tuple[str, ...] = ()
    """Metrics that are above 0 while this one is not to be believed."""
    is_of_group: bool = False
    """Each pod of a group, as a LeaderWorkerSet has them, shows the series of the whole group."""
    always: tuple[str, ...] = ()
    """Of a counter, of which is read what it gained in the last minute, per second: metrics that
    its server shows from its start on. Missing beside one of them, it had not begun; missing
    without them, the scrape was missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One preset: what is added up, and what one replica can serve of it."""

    name: str
    added: tuple[tuple[PodMetric, ...], ...]
    """Each is one quantity by its metrics of all releases; the first that a pod shows counts."""
    threshold: float | None
    """The usual `demandThreshold`; None: it depends on the model, and without one the demand only
    wakes."""
    needs_threshold: str = ""
    """What a `demandThreshold` is, of a preset that means nothing without one."""
    activates: bool = True
    """Above `demandActivationThreshold` the workload is in use."""
    idle: tuple[str, ...] = ()
    """Metrics that a router shows without requests as well, and only if it counts them: with one of
    these, no series means 0."""
    model_label: str = ""
    """The label of a router's series that names the model; empty: none does."""
    needs_model: bool = False
    """Its router may serve several workloads, so the model has to be named."""

    @property
    def known(self) -> tuple[Known, ...]:
        """What is known of the metric of each quantity."""
        return tuple(known_metrics.METRICS[quantity[0].names[0]] for quantity in self.added)

    @property
    def is_of_router(self) -> bool:
        """Whether the pods of a router show it, and not the workload's own."""
        return any(known.owner is MetricOwner.ROUTER for known in self.known)

    @property
    def wakes(self) -> bool:
        """Whether it says when there is work also without pods, as a user's own query may."""
        return not self.added or any(known.at_zero for known in self.known)

    @property
    def never_alone(self) -> str:
        """Why it would remove busy replicas if it scaled alone; empty if one quantity would not."""
        return min((known.never_alone for known in self.known), default="")

    @property
    def doubt_alone(self) -> str:
        """Why it may ask for too few replicas where it scales alone; empty likewise."""
        return min((known.doubt_alone for known in self.known), default="")

    @property
    def needs_pods(self) -> bool:
        """Whether the workload's pods are in the query, so that their names have to be known."""
        ((metric, *_), *_) = self.added
        return not self.is_of_router or bool(metric.endpoint) or metric.is_mean_of_pool


def _spelt(*names: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(spelling for name in names for spelling in (name, name.replace(":", "_")))
    )


_ENGINE = ("model_name", "engine")
_VLLM_WAITING = (
    PodMetric(_spelt("vllm:num_requests_waiting"), "0.3 and later", _ENGINE),
    PodMetric(("num_requests_waiting",), "NIM 1", ("model_name",)),
)
_VLLM_RUNNING = (
    PodMetric(_spelt("vllm:num_requests_running"), "0.3 and later", _ENGINE),
    PodMetric(("num_requests_running",), "NIM 1", ("model_name",)),
)
_VLLM_KV_CACHE = (
    PodMetric(
        _spelt("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        "0.3 and later",
        _ENGINE,
        is_mean=True,
    ),
    PodMetric(("gpu_cache_usage_perc",), "NIM 1", ("model_name",), is_mean=True),
)
_RANK = ("model_name", "engine_type", "dp_rank")
"""Ranks of one tensor or pipeline group show the same requests, on each of its nodes; those of data
parallelism do not.

`priority` is left out: the row without one is the sum of the others, and the largest."""
_SGLANG_WAITING = (
    PodMetric(_spelt("sglang:num_queue_reqs"), "0.4 and later", _RANK, is_of_group=True),
)
_SGLANG_RUNNING = (
    PodMetric(_spelt("sglang:num_running_reqs"), "0.4 and later", _RANK, is_of_group=True),
)
_TGI_WAITING = (PodMetric(("tgi_queue_size",), "0.3 and later"),)
_TGI_RUNNING = (PodMetric(("tgi_batch_current_size",), "0.3 and later"),)
_TEI_WAITING = (PodMetric(("te_queue_size",), "0.1 and later"),)
_TRITON_WAITING = (
    PodMetric(("nv_inference_pending_request_count",), "23.09 and later", ("model", "version")),
)
_TRTLLM_ACTIVE = (
    PodMetric(
        ("nv_trt_llm_request_metrics",),
        "23.11 and later",
        ("model", "version"),
        matchers='request_type="active"',
    ),
)
"""`waiting` is a part of `active`."""
_KNATIVE = (
    PodMetric(("kn_serving_queue_depth",), "1.20.1 and later"),
    PodMetric(("kn_queueproxy_depth",), "1.19.0 to 1.20.0"),
    PodMetric(("revision_queue_depth",), "to 1.18"),
)
_FLOW = ("fairness_id", "priority", "inference_pool", "model_name", "target_model_name")
_EPP_WAITING = (
    PodMetric(("llm_d_epp_flow_control_queue_size",), "llm-d-router 0.9 and later", _FLOW),
    PodMetric(("inference_extension_flow_control_queue_size",), "from 1.1 of the extension", _FLOW),
)
_RUNNING = ("model_name", "target_model_name", "fairness_id", "priority")
_EPP_RUNNING = (
    PodMetric(("llm_d_epp_request_running",), "llm-d-router 0.9 and later", _RUNNING),
    PodMetric(("inference_objective_running_requests",), "from 1.1 of the extension", _RUNNING),
    PodMetric(("inference_model_running_requests",), "0.3 to 1.0 of the extension", _RUNNING),
)
_EPP_HOLDS = (
    "llm_d_epp_flow_control_pool_saturation",
    "inference_extension_flow_control_pool_saturation",
)
"""Shown where requests can be held at all: flow control is on."""
_EPP_RUNS = ("llm_d_epp_ready_endpoints", "inference_pool_ready_pods")
_ENDPOINTS, _ENDPOINT = "llm_d_epp_per_endpoint_queue_size", "model_server_endpoint"
"""Made of the endpoints that there are, at each scrape."""
_EPP_TOKENS = (
    PodMetric(
        ("llm_d_epp_inflight_tokens",),
        "llm-d-router 0.10 and later",
        ("endpoint_name", "fairness_id", "priority"),
        endpoint="endpoint_name",
    ),
)
"""Each producer of the router counts the same requests: `producer_name` is left out."""
_EPP_SATURATION = (
    PodMetric(
        ("llm_d_epp_flow_control_pool_saturation",),
        "llm-d-router 0.10 and later",
        is_mean_of_pool=True,
        wrong_above_zero=("llm_d_epp_flow_control_stale_endpoints",),
    ),
)
_DYNAMO = (
    PodMetric(
        ("dynamo_frontend_active_requests", "dynamo_frontend_inflight_requests"),
        "1.0 and later",
        ("model",),
    ),
)
_KTHENA = (PodMetric(("kthena_router_active_downstream_requests",), "0.1 and later", ("model",)),)
"""What its fairness queue holds is a part of it."""
_AIBRIX = (PodMetric(("gateway_model_in_flight_requests",), "0.8 and later", ("model",)),)
_ROUTER_RATE = (
    PodMetric(
        _spelt("vllm:num_incoming_requests_total"),
        "0.1.8 and later",
        ("model",),
        always=("router_cpu_usage_percent",),
    ),
)
_ENVOY_RATE = (
    PodMetric(
        ("gen_ai_server_request_duration_seconds_count",),
        "0.4 and later",
        (
            *("gen_ai_operation_name", "gen_ai_provider_name", "ai_backend", "error_type"),
            *("gen_ai_original_model", "gen_ai_request_model", "gen_ai_response_model"),
        ),
        always=("target_info",),
    ),
)

_MISSED = "1h"
"""For how long a server that does not answer its scrapes is missed, as a pod with a GPU is."""
_WAITING = 5
"""What vLLM's production-stack takes, and the depth at which llm-d calls a server saturated."""
_AT_ONCE = 16
"""What llm-d's guide takes."""
_SATURATED = 0.7
"""What llm-d's guides take."""

_TABLE = (
    Preset(name="vllm-queue", added=(_VLLM_WAITING,), threshold=_WAITING),
    Preset(name="vllm-running", added=(_VLLM_RUNNING,), threshold=_AT_ONCE),
    Preset(name="vllm-requests", added=(_VLLM_WAITING, _VLLM_RUNNING), threshold=_AT_ONCE),
    Preset(name="vllm-kv-cache", added=(_VLLM_KV_CACHE,), threshold=0.8),
    Preset(name="sglang-queue", added=(_SGLANG_WAITING,), threshold=_WAITING),
    Preset(name="sglang-running", added=(_SGLANG_RUNNING,), threshold=_AT_ONCE),
    Preset(name="sglang-requests", added=(_SGLANG_WAITING, _SGLANG_RUNNING), threshold=_AT_ONCE),
    Preset(name="tgi-queue", added=(_TGI_WAITING,), threshold=_WAITING),
    Preset(name="tgi-requests", added=(_TGI_WAITING, _TGI_RUNNING), threshold=_AT_ONCE),
    Preset(name="tei-queue", added=(_TEI_WAITING,), threshold=_WAITING),
    Preset(name="triton-queue", added=(_TRITON_WAITING,), threshold=_WAITING),
    Preset(name="triton-trtllm-requests", added=(_TRTLLM_ACTIVE,), threshold=_AT_ONCE),
    Preset(name="knative-requests", added=(_KNATIVE,), threshold=_AT_ONCE),
    Preset(
        name="llm-d-epp-queue",
        added=(_EPP_WAITING,),
        threshold=_WAITING,
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
        idle=_EPP_HOLDS,
        model_label="model_name",
    ),
    Preset(
        name="llm-d-epp-tokens",
        added=(_EPP_TOKENS,),
        threshold=None,
        needs_threshold="the tokens that one replica prefills in a second, times the seconds that "
        "they may wait",
    ),
    Preset(
        name="llm-d-epp-saturation",
        added=(_EPP_SATURATION,),
        threshold=_SATURATED,
        activates=False,
    ),
    Preset(
        name="dynamo-requests",
        added=(_DYNAMO,),
        threshold=_AT_ONCE,
        model_label="model",
    ),
    Preset(
        name="kthena-requests",
        added=(_KTHENA,),
        threshold=_AT_ONCE,
        model_label="model",
        needs_model=True,
    ),
    Preset(
        name="aibrix-requests",
        added=(_AIBRIX,),
        threshold=_AT_ONCE,
        model_label="model",
        needs_model=True,
    ),
    Preset(
        name="vllm-router-rate",
        added=(_ROUTER_RATE,),
        threshold=None,
        model_label="model",
        needs_model=True,
    ),
    Preset(
        name="envoy-ai-gateway-rate",
        added=(_ENVOY_RATE,),
        threshold=None,
        needs_threshold="the requests that one replica answers in a second",
        model_label="gen_ai_original_model",
        needs_model=True,
    ),
)
PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _TABLE}
NAMES = tuple(PRESETS)


def promql(preset: Preset, pods: PodSelector, servers: PodSelector, model: str = "") -> str:
    """Return the PromQL for one number.

    It has no row if none of the pods shows its part of it. `pods` are the workload's, or its
    router's; `servers` are the workload's. An empty `model` stands for every model.
    """
    matchers = f"{preset.model_label}={quoted(model)}" if model else ""
    totals = []
    for quantity in preset.added:
        rows = [row for metric in quantity for row in _by_pod(metric, pods, servers, matchers)]
        if preset.idle:
            idle = PodMetric(preset.idle, "")
            rows += [f"0 * {row}" for row in _by_pod(idle, pods, servers, "")]
        doubts = [_silent(quantity, pods)]
        for metric in quantity:
            if metric.always:
                doubts += _missed(metric, pods)
            if metric.wrong_above_zero:
                wrong = _selectors(metric.wrong_above_zero, pods, "")
                doubts += [f"count({shown} > 0) > 0" for shown, _ in wrong]
        total = "max" if any(metric.is_mean_of_pool for metric in quantity) else "sum"
        totals.append(f"({total}({' or '.join(rows)}) unless on () ({' or '.join(doubts)}))")
    return " + ".join(totals)


def _silent(quantity: tuple[PodMetric, ...], pods: PodSelector) -> str:
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


def _missed(metric: PodMetric, pods: PodSelector) -> Iterator[str]:
    """Yield the counters that a minute ago were not there, though they may have counted already.

    They cannot be compared with 0, which would take all that they have ever counted for a rate.
    """
    always = _selectors(metric.always, pods, "")
    for (shown, _), (beside, _) in zip(_selectors(metric.names, pods, ""), always, strict=True):
        target = "job, instance, pod, exported_pod"
        yield f"count({shown} unless {shown} offset 1m unless on ({target}) {beside} offset 1m) > 0"


def _by_pod(
    metric: PodMetric, pods: PodSelector, servers: PodSelector, matchers: str
) -> Iterator[str]:
    """Yield what each pod shows of a metric, in either layout of the labels."""
    matchers = ",".join(filter(None, (metric.matchers, matchers)))
    for selector, is_exported in _selectors(metric.names, pods, matchers):
        read = selector
        if metric.always:
            # A counter that has begun since, or was reset, is compared with 0.
            before = f"({selector} offset 1m <= {selector} or {selector} * 0)"
            read = f"({selector} - {before}) / 60"
        of_group = pods.group_regex if metric.is_of_group else ""
        once = _once(read, metric.labels, is_exported=is_exported, of_group=of_group)
        if metric.endpoint:
            label, endpoints = metric.endpoint, _endpoints(pods, servers, is_exported=is_exported)
            named = f'label_replace({endpoints}, "{label}", "$1", "{_ENDPOINT}", "(.+)")'
            once = f"{once} and on (pod, {label}) {named}"
        if metric.labels:
            once = f"{'avg' if metric.is_mean else 'sum'} by (pod) ({once})"
        if metric.is_mean_of_pool:
            endpoints = _endpoints(pods, servers, is_exported=is_exported)
            once = f"{once} * count by (pod) ({endpoints})"
        yield once


def _endpoints(pods: PodSelector, servers: PodSelector, *, is_exported: bool) -> str:
    """Return the workload's endpoints that each of the router's pods has at that moment."""
    ours = f"{_ENDPOINT}=~{quoted(f'(?:{servers.regex})-rank-[0-9]+')}"
    by_layout = {exported: shown for shown, exported in _selectors((_ENDPOINTS,), pods, ours)}
    return _once(by_layout[is_exported], (_ENDPOINT,), is_exported=is_exported)


def _once(read: str, labels: tuple[str, ...], *, is_exported: bool, of_group: str = "") -> str:
    """Return series of pods without those that are shown again, by another job, name or pod.

    `of_group` is the pattern of which the first part names the group of a pod; empty: it has none.
    """
    if is_exported:
        read = f'label_replace({read}, "pod", "$1", "exported_pod", "(.+)")'
    if of_group:
        read = f'label_replace({read}, "pod", "$1", "pod", {quoted(of_group)})'
    return f"max by ({', '.join(('pod', *labels))}) ({read})"


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
