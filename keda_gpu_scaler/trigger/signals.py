"""The rules of what wakes a workload beside its own GPUs: another workload's, and a demand.

Pure. They exist at zero replicas, where a workload's own GPUs show nothing.
"""

from collections.abc import Iterator

from keda_gpu_scaler import demand as demands
from keda_gpu_scaler import influxql, promql, workload
from keda_gpu_scaler.access import Access
from keda_gpu_scaler.demand import DemandSpec, OnEmpty
from keda_gpu_scaler.spec import Aggregation, PodSelector
from keda_gpu_scaler.trigger import values
from keda_gpu_scaler.trigger.reader import Reader

_OF_DEMAND = ("demandActivationThreshold", "demandThreshold", "demandOnEmpty")


def neighbour(reader: Reader, namespace: str) -> PodSelector | None:
    """Return the pods whose GPUs keep this workload active as well."""
    if not reader.has("activationWorkload"):
        return None
    if reader.has("query"):
        reader.refuse(
            "activationWorkload",
            "expected none with query, which shows only what it is written for; a demandQuery can "
            "ask about another workload",
        )
    return reader.read("activationWorkload", lambda text: workload.parse(text, namespace), None)


def demand(reader: Reader, access: Access) -> DemandSpec | None:
    """Return what the trigger says of the demand; the keys around a query mean nothing alone."""
    if not reader.has("demandQuery"):
        for key in filter(reader.has, _OF_DEMAND):
            reader.refuse(key, "expected demandQuery with it")
        return None
    return DemandSpec(
        text=_text(reader, access),
        activation_threshold=reader.read("demandActivationThreshold", values.level, 0.0),
        threshold=_threshold(reader),
        on_empty=reader.read("demandOnEmpty", values.choice(OnEmpty), OnEmpty.ERROR),
    )


def metric_name(reader: Reader, usual: str) -> str:
    """Return the name of the load's metric, which is not that of the demand's."""
    name = reader.read("metricName", values.metric_name, usual)
    if name == demands.METRIC_NAME:
        reader.refuse("metricName", "expected another name: this one is the demand's")
    return name


def warnings(spec: DemandSpec | None) -> Iterator[str]:
    """Yield what is legal and still likely to disappoint."""
    if spec is not None and spec.threshold and spec.activation_threshold >= spec.threshold:
        yield (
            f"demandActivationThreshold {spec.activation_threshold:g} is not below demandThreshold "
            f"{spec.threshold:g}: a demand that one replica cannot serve may count as none"
        )


def _text(reader: Reader, access: Access) -> str:
    """Return the expression as it is sent, confined to the ScaledObject's own namespace."""
    source = reader.read("source", str, "")
    if source in access.direct_sources:
        reader.refuse(
            "demandQuery", "expected a source that understands PromQL: this one asks exporters"
        )
    if source in access.influxql_sources:
        return _influxql(reader, access.own_promql)
    policy, namespace = access.own_promql, reader.namespace
    return reader.read("demandQuery", lambda text: promql.number(text, policy, namespace), "")


def _influxql(reader: Reader, policy: promql.Policy) -> str:
    """Return the expression where the source is an InfluxDB: there it is confined to nothing."""
    if policy is not promql.Policy.ALLOW:
        reader.refuse(
            "demandQuery",
            "InfluxQL cannot be confined to a namespace; expected KEDA_GPU_SCALER_OWN_PROMQL=allow "
            "of the scaler, or a source that understands PromQL",
        )
    return reader.read("demandQuery", influxql.selection, "")


def _threshold(reader: Reader) -> float | None:
    threshold = reader.read("demandThreshold", values.target, None)
    if threshold is not None and reader.read("aggregation", str, "") == Aggregation.AVERAGE:
        reader.refuse(
            "demandThreshold",
            "expected aggregation: sum beside it: with metricType Value the HPA would multiply the "
            "demand by the replicas; or put the demand into a trigger of its own",
        )
    return threshold
