"""What is known of the metrics of servers, routers and exporters, whoever reads them. Pure data.

The presets are made of them, and the rules of `check` judge PromQL by them.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec.spec import Signal


class MetricOwner(StrEnum):
    """Whose pods show a metric."""

    SERVER = "server"
    """The workload's own."""
    ROUTER = "router"
    EXPORTER = "exporter"


class Unit(Enum):
    """What a number of a metric is, as far as a threshold has to fit it."""

    AMOUNT = auto()
    SHARE = auto()
    """From 0 to 1."""
    PERCENT = auto()
    COUNTER = auto()
    """It only grows."""


class Known(NamedTuple):
    """What is known of a metric."""

    owner: MetricOwner
    unit: Unit = Unit.AMOUNT
    adds_up: bool = True
    """The sum over the pods that show it grows with the work, and not with the pods."""
    at_zero: bool = False
    """It says when there is work also while the workload has no pods."""
    never_alone: str = ""
    """Why it would remove busy replicas if it scaled alone."""
    doubt_alone: str = ""
    """Why it may ask for too few replicas where it scales alone."""
    fills_gpus: bool = True
    """It counts the work of an LLM server, which fills its GPUs from the first request on."""


_QUEUE = "nobody waits where the replicas keep up"
_ANSWERS = "it counts answers, and overloaded replicas give fewer"
_SERVER, _ROUTER = Known(MetricOwner.SERVER), Known(MetricOwner.ROUTER)
_QUEUED, _SHARE = _SERVER._replace(never_alone=_QUEUE), _SERVER._replace(unit=Unit.SHARE)
_OF_ANY_MODEL = _SERVER._replace(fills_gpus=False)
_HELD = _ROUTER._replace(at_zero=True, never_alone=_QUEUE)
_MEAN = _ROUTER._replace(adds_up=False)
_ANSWERED = _ROUTER._replace(unit=Unit.COUNTER, never_alone=_ANSWERS)
_EXPORTER = Known(MetricOwner.EXPORTER, fills_gpus=False)
_PERCENT, _RATIO = _EXPORTER._replace(unit=Unit.PERCENT), _EXPORTER._replace(unit=Unit.SHARE)

_ROWS: Mapping[str, Known] = {
    "vllm:num_requests_waiting": _QUEUED,
    "vllm:num_requests_waiting_by_reason": _QUEUED,
    "vllm:num_requests_running": _SERVER,
    "vllm:kv_cache_usage_perc": _SHARE,
    "vllm:gpu_cache_usage_perc": _SHARE,
    "vllm:num_incoming_requests_total": _ROUTER._replace(unit=Unit.COUNTER, at_zero=True),
    "num_requests_waiting": _QUEUED,
    "num_requests_running": _SERVER,
    "gpu_cache_usage_perc": _SHARE,
    "sglang:num_queue_reqs": _QUEUED,
    "sglang:num_running_reqs": _SERVER,
    "sglang:token_usage": _SHARE,
    "tgi_queue_size": _QUEUED,
    "tgi_batch_current_size": _SERVER,
    "trtllm_num_requests_waiting": _QUEUED,
    "trtllm_num_requests_running": _SERVER,
    "trtllm_kv_cache_utilization": _SHARE,
    "te_queue_size": _QUEUED._replace(fills_gpus=False),
    "nv_inference_pending_request_count": _QUEUED._replace(fills_gpus=False),
    "nv_trt_llm_request_metrics": _SERVER,
    "nv_gpu_utilization": _SHARE._replace(fills_gpus=False),
    "kn_serving_queue_depth": _OF_ANY_MODEL,
    "kn_queueproxy_depth": _OF_ANY_MODEL,
    "revision_queue_depth": _OF_ANY_MODEL,
    "llm_d_epp_flow_control_queue_size": _HELD,
    "inference_extension_flow_control_queue_size": _HELD,
    "llm_d_epp_request_running": _ROUTER,
    "inference_objective_running_requests": _ROUTER,
    "inference_model_running_requests": _ROUTER,
    "llm_d_epp_inflight_tokens": _ROUTER._replace(
        doubt_alone="leaves out answers whose prompt is prefilled: servers that decode as well "
        "need threshold beside it"
    ),
    "llm_d_epp_flow_control_pool_saturation": _MEAN._replace(unit=Unit.SHARE),
    "inference_extension_flow_control_pool_saturation": _MEAN._replace(unit=Unit.SHARE),
    "dynamo_frontend_active_requests": _ROUTER,
    "dynamo_frontend_inflight_requests": _ROUTER,
    "dynamo_frontend_queued_requests": _ROUTER._replace(never_alone=_QUEUE),
    "kthena_router_active_downstream_requests": _ROUTER,
    "kthena_router_fairness_queue_size": _ROUTER._replace(never_alone=_QUEUE),
    "kthena_router_requests_total": _ANSWERED._replace(at_zero=True),
    "gateway_model_in_flight_requests": _ROUTER,
    "gen_ai_server_request_duration_seconds_count": _ANSWERED,
    "litellm_proxy_total_requests_metric_total": _ANSWERED._replace(at_zero=True),
    "litellm_in_flight_requests": _ROUTER._replace(at_zero=True),
    "ray_serve_deployment_queued_queries": _HELD._replace(fills_gpus=False),
    "DCGM_FI_DEV_MEM_COPY_UTIL": _PERCENT,
    "dcgm_mem_copy_utilization": _PERCENT,
    "DCGM_FI_DEV_FB_USED_PERCENT": _RATIO,
    "DCGM_FI_PROF_SM_OCCUPANCY": _RATIO,
}
_PREFIXES: Mapping[str, Known] = {
    **dict.fromkeys(("vllm:", "vllm_", "sglang:", "sglang_", "tgi_", "trtllm_"), _SERVER),
    **dict.fromkeys(("nv_inference_", "nv_trt_llm_", "ray_serve_replica_"), _OF_ANY_MODEL),
    **dict.fromkeys(("llm_d_epp_average_", "inference_pool_average_"), _MEAN),
    **dict.fromkeys(("llm_d_epp_", "inference_", "dynamo_frontend_", "gen_ai_"), _ROUTER),
    "DCGM_": _EXPORTER,
}
"""Of metrics without a row: the first beginning that fits."""
_COUNTED = ("_total", "_bucket", "_sum", "_count")


def _of_exporters() -> dict[str, Known]:
    known = dict.fromkeys(profiles.KNOWN_METRICS, _EXPORTER)
    for signal, measure in profiles.MEASURES:
        if signal.is_percentage and not measure.is_ratio:
            for metric in measure.metrics:
                known[metric.name] = _PERCENT if metric.factor == 1 else _RATIO
    return known


def _signals() -> dict[frozenset[str], tuple[Signal, float]]:
    found: dict[frozenset[str], set[tuple[Signal, float]]] = {}
    for signal, measure in profiles.MEASURES:
        shared = {measure.metrics[0].name} if measure.is_ratio else set()
        for metric in measure.metrics:
            names = frozenset({*shared, metric.name})
            if names != shared:
                found.setdefault(names, set()).add((signal, metric.factor))
    return {names: signals.pop() for names, signals in found.items() if len(signals) == 1}


SIGNALS: Mapping[frozenset[str], tuple[Signal, float]] = _signals()
"""What metrics of an exporter are read for, and what makes its unit of theirs: one metric, or that
of the memory in use and another of which it is a share."""
METRICS: Mapping[str, Known] = {
    **_of_exporters(),
    **{name.replace(":", "_"): known for name, known in _ROWS.items()},
    **_ROWS,
}


def known(name: str) -> Known | None:
    """Return what is known of a metric; None: nothing."""
    if name in METRICS:
        return METRICS[name]
    row = next((row for start, row in _PREFIXES.items() if name.startswith(start)), None)
    return row._replace(unit=Unit.COUNTER) if row and name.endswith(_COUNTED) else row
