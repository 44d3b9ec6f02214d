"""Specs for tests, made from the strings a user would write."""

from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec import ScaledObject, TriggerSpec

BERT = ScaledObject("ml", "bert")


def spec(**metadata: str) -> TriggerSpec:
    """Return the spec of a trigger for deployment/bert at threshold 70, unless told otherwise."""
    given = {"workload": "bert", "threshold": "70", **metadata}
    return trigger.parse(BERT, {key: text for key, text in given.items() if text}, {"default"})
