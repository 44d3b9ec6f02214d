"""A call of KEDA's, from its first byte to its status."""

from dataclasses import dataclass

from keda_gpu_scaler.decision import Decision
from keda_gpu_scaler.spec import ScaledObject


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A call was read and is about to be answered. What comes of it is stated in the same task."""

    method: str
    scaled_object: ScaledObject
    """As the caller names it; nobody has checked that yet."""
    traceparent: str
    """The caller's place in a trace, as W3C writes it; empty where it sent none."""


@dataclass(frozen=True, slots=True)
class CallDecided:
    """The call that this task answers is answered from this decision, new or not."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Called:
    """One RPC ended."""

    method: str
    code: str
    """The gRPC status code's name, such as OK or UNAVAILABLE."""
    seconds: float
