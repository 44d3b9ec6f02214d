"""Triggers as a user writes them: the specs that are read of them, and KEDA's requests."""

from typing import Any

from keda_gpu_scaler import trigger
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.summary import summarized
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access

BERT = ScaledObject("ml", "bert")


def spec(**metadata: str) -> TriggerSpec:
    """Return the spec of a trigger for deployment/bert at threshold 70, unless told otherwise."""
    return trigger.parse(BERT, _given(metadata), access())


def access(*sources: str, **terms: Any) -> Access:
    """Return access of all namespaces to these sources, or else the usual one."""
    return Access(dict.fromkeys(sources or ("default",), EVERY_NAMESPACE), **terms)


def demanding(text: str, **metadata: str) -> TriggerSpec:
    """Return the same trigger with a demandQuery that is sent as it is."""
    given = _given({"demandQuery": text, **metadata})
    return trigger.parse(BERT, given, access(own_promql=Policy.ALLOW))


def evaluated(
    decided: Decision,
    given: TriggerSpec | None = None,
    scaled_object: ScaledObject = BERT,
    *,
    age_seconds: float | None = 1.0,
    recommended: int | None = None,
) -> facts.Evaluated:
    """Return the fact that a trigger was decided, by samples of this age."""
    given = given or spec()
    told = summarized(scaled_object, given, decided, recommended)
    return facts.Evaluated(scaled_object, given, decided, told, age_seconds, "default")


def reference(name: str = "bert", namespace: str = "ml", **metadata: str) -> pb.ScaledObjectRef:
    """Return what KEDA sends of a ScaledObject with this trigger."""
    given = _given({"scalerAddress": "keda-gpu-scaler.keda.svc:6000", **metadata})
    return pb.ScaledObjectRef(name=name, namespace=namespace, scalerMetadata=given)


def request(
    asked: pb.ScaledObjectRef, metric_name: str = "gpu-utilization"
) -> pb.GetMetricsRequest:
    """Return what KEDA sends for the value of a metric."""
    return pb.GetMetricsRequest(scaledObjectRef=asked, metricName=metric_name)


def _given(metadata: dict[str, str]) -> dict[str, str]:
    """Return the usual keys and these; an empty text removes one."""
    given = {"workload": "bert", "threshold": "70", **metadata}
    return {key: text for key, text in given.items() if text}
