"""Alerts about ScaledObjects, and the replicas that tell each other of them."""

from dataclasses import dataclass

from keda_gpu_scaler.spec import ScaledObject


@dataclass(frozen=True, slots=True)
class AlertChanged:
    """An alert about a ScaledObject begins to fire, or no longer does; once at each change."""

    scaled_object: ScaledObject
    alert: str
    """Its name."""
    fires: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Notified:
    """Somebody sent a message to the webhook, and this came of it."""

    sender: str
    """alertmanager, grafana, grafana-dashboard; unknown where the message was not read."""
    status: int
    """The HTTP status of the answer."""
    text: str
    """What the sender was answered."""
    truncated: int = 0
    """Alerts that the sender left out."""


@dataclass(frozen=True, slots=True)
class PeerChanged:
    """Another replica can no longer be told of alerts, or can; once at each change."""

    peer: str
    """Its address, or the name that has none."""
    reachable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PeersAsked:
    """The other replicas were told of alerts, or asked for them."""

    reachable: int
    unreachable: int
