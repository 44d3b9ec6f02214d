"""Specs for tests, made from the strings a user would write."""

from typing import Any

from keda_gpu_scaler import trigger
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access

BERT = ScaledObject("ml", "bert")


def spec(**metadata: str) -> TriggerSpec:
    """Return the spec of a trigger for deployment/bert at threshold 70, unless told otherwise."""
    given = {"workload": "bert", "threshold": "70", **metadata}
    return trigger.parse(BERT, {key: text for key, text in given.items() if text}, access())


def access(*sources: str, **terms: Any) -> Access:
    """Return access of all namespaces to these sources, or else the usual one."""
    return Access(dict.fromkeys(sources or ("default",), EVERY_NAMESPACE), **terms)


def demanding(text: str, **metadata: str) -> TriggerSpec:
    """Return the same trigger with a demandQuery that is sent as it is."""
    given = {"workload": "bert", "threshold": "70", "demandQuery": text, **metadata}
    given = {key: value for key, value in given.items() if value}
    return trigger.parse(BERT, given, access(own_promql=Policy.ALLOW))
