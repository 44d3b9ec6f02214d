"""Every metric of the scaler's own, as `/metrics` shows it once each kind of fact was stated."""

from typing import NamedTuple

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import Demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import Telemetry
from testbed import triggers

PREFIX = "keda_gpu_scaler_"
_DECIDED = Decision(
    state=State.MEASURED,
    reason="mean 83.5 over 2 pods",
    value=167.0,
    active=True,
    average=83.5,
    evidence=EvidenceSource.EXPORTERS,
    unschedulable=3,
    futile="4 replicas instead of 3 did not help",
)
_EVALUATED = triggers.evaluated(_DECIDED, age_seconds=2.0, recommended=3)
_FACTS = (
    _EVALUATED,
    facts.DemandKnown(triggers.BERT, triggers.spec(), Demand(7.0)),
    facts.SnapshotTaken("default", "utilization", "auto", 1.0, 5, 0),
    facts.SourceChanged("default", works=True, reason="it answers"),
    facts.EvidenceChanged("default", EvidenceSource.EXPORTERS, "nothing there"),
    facts.Queried("default", "snapshot", 0.5, None),
    facts.Called("GetMetrics", "OK", 0.002),
    facts.LagChanged("default", 150.0),
    facts.WatchChanged("pods", works=True, reason="it is listed"),
    facts.Notified("alertmanager", 200, "taken: 1"),
    facts.AlertChanged(triggers.BERT, "Busy", fires=True, reason="it fires"),
    facts.PeersAsked(1, 0),
)


class Exposed(NamedTuple):
    """One metric as people read about it."""

    name: str
    labels: tuple[str, ...]
    meaning: str


def exposed() -> list[Exposed]:
    """Return every metric that Telemetry shows, without those of Python and of the process."""
    counted = Telemetry()
    for fact in _FACTS:
        counted(fact)
    counted.follow_certificate("grpc", lambda: {"server": 1.0})
    shown = []
    for family in counted.registry.collect():
        if family.name.startswith(PREFIX):
            total = "_total" if family.type == "counter" else ""
            labels = tuple(name for name in family.samples[0].labels if name != "le")
            shown.append(Exposed(family.name + total, labels, family.documentation))
    return shown
