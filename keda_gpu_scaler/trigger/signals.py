"""The rules of what wakes a workload beside its own GPUs: another workload's, and a demand.

Pure. They exist at zero replicas, where a workload's own GPUs show nothing.
"""

from collections.abc import Iterator

from keda_gpu_scaler import influxql, promql, workload
from keda_gpu_scaler.access import Access
from keda_gpu_scaler.demand import METRIC_NAME, DemandSpec, OnEmpty
from keda_gpu_scaler.spec import Aggregation, PodSelector
from keda_gpu_scaler.trigger import rules, values
from keda_gpu_scaler.trigger.reader import Reader

_OF_DEMAND = ("demandActivationThreshold", "demandThreshold", "demandOnEmpty")


def neighbour(reader: Reader, pods: PodSelector) -> PodSelector | None:
    """Return the pods whose GPUs keep this workload active as well.

    Args:
        reader: reads the trigger.
        pods: those that are measured; the others are in the same namespace.
    """
    key = "activationWorkload"
    if not reader.has(key):
        return None
    if reader.has("query"):
        reader.refuse(
            key,
            "expected none with query, which shows only what it is written for; a demandQuery can "
            "ask about another workload",
        )
    found = reader.read(key, lambda text: workload.parse(text, pods.namespace), None)
    if found == pods:
        reader.refuse(
            key, "expected another workload: the GPUs of this one keep it active by themselves"
        )
    return found


def demand(
    reader: Reader, access: Access, source: str, aggregation: Aggregation
) -> DemandSpec | None:
    """Return what the trigger says of the demand; the keys around a query mean nothing alone.

    Args:
        reader: reads the trigger.
        access: what its ScaledObject is allowed.
        source: whom the trigger asks; empty where it names none that it may use.
        aggregation: what it answers over replicas.
    """
    if not reader.has("demandQuery"):
        for key in filter(reader.has, _OF_DEMAND):
            reader.refuse(key, "expected demandQuery with it")
        return None
    return DemandSpec(
        text=_text(reader, access, source),
        activation_threshold=reader.read("demandActivationThreshold", values.level, 0.0),
        threshold=_threshold(reader, aggregation),
        on_empty=reader.read("demandOnEmpty", values.choice(OnEmpty), OnEmpty.ERROR),
    )


def metric_name(reader: Reader, usual: str) -> str:
    """Return the name of the load's metric, which is never that of the demand's.

    KEDA compares the names of a trigger's metrics without regard to case.
    """
    name = reader.read("metricName", values.metric_name, usual)
    if name.lower() == METRIC_NAME:
        reader.refuse("metricName", "expected another name: this one is that of the demand")
    return name


def warnings(spec: DemandSpec | None) -> Iterator[str]:
    """Yield what is legal and still likely to disappoint."""
    if spec is not None and spec.threshold and spec.activation_threshold >= spec.threshold:
        yield (
            f"demandActivationThreshold {spec.activation_threshold:g} is not below demandThreshold "
            f"{spec.threshold:g}: a demand for a whole replica can count as none"
        )


def _text(reader: Reader, access: Access, source: str) -> str:
    """Return the expression as it is sent, confined to the ScaledObject's own namespace."""
    if source in access.influxql_sources:
        return _influxql(reader, access.own_promql)
    rules.refuse_other_languages(reader, access, "demandQuery", source)
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


def _threshold(reader: Reader, aggregation: Aggregation) -> float | None:
    """Return the target; the HPA takes a demand as a sum, and nothing else can be made of it."""
    threshold = reader.read("demandThreshold", values.target, None)
    if threshold is not None and aggregation is Aggregation.AVERAGE:
        reader.refuse(
            "demandThreshold",
            "expected aggregation: sum beside it: with metricType Value the HPA would multiply the "
            "demand by the replicas; or put the demand into a trigger of its own",
        )
    return threshold
