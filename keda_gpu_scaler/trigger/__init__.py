"""From the strings of a trigger's metadata to a TriggerSpec."""

from keda_gpu_scaler.trigger.keys import KEDA_KEYS, KEYS, Key
from keda_gpu_scaler.trigger.metadata import parse

__all__ = ["KEDA_KEYS", "KEYS", "Key", "parse"]
