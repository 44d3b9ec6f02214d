"""What a trigger was answered, and what the answer rests on."""

from dataclasses import dataclass

from keda_gpu_scaler.decision import Decision
from keda_gpu_scaler.demand import Demand
from keda_gpu_scaler.evidence import Basis
from keda_gpu_scaler.spec import ScaledObject, TriggerSpec


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One trigger was decided."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    decision: Decision
    snapshot_age_seconds: float | None
    """Seconds since the newest usable snapshot's evaluation time; None without one."""
    source: str = ""
    """As the facts of its snapshot name the source; empty: as the trigger does."""


@dataclass(frozen=True, slots=True)
class DemandKnown:
    """A trigger's demand was asked for; it may have been answered from what was known."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    demand: Demand


@dataclass(frozen=True, slots=True)
class EvidenceChanged:
    """What decisions rest on from now on, beside the samples; stated once at each change."""

    source: str
    basis: Basis
    reason: str
