"""What a pod's status says, from how its containers are."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.e2e.kubelet.container import Container, now, waiting
from tests.e2e.kubelet.files import Manifest

NODE_ADDRESS = "127.0.0.1"


@dataclass(slots=True)
class Report:
    """One pod's status, and since when its conditions are as they are."""

    address: str
    problem: tuple[str, str] | None = None
    """Why its containers cannot start yet: a word and a sentence."""
    _began: str = field(default_factory=now)
    _since: dict[tuple[str, bool], str] = field(default_factory=dict)

    def of(self, pod: Manifest, containers: Sequence[Container]) -> Manifest:
        """Return the whole status."""
        ready = bool(containers) and all(each.ready for each in containers)
        conditions = {
            "PodScheduled": True,
            "Initialized": True,
            "ContainersReady": ready,
            "Ready": ready,
        }
        return {
            "phase": phase(containers),
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": NODE_ADDRESS,
            "startTime": self._began,
            "conditions": [self._condition(*each) for each in conditions.items()],
            "containerStatuses": [self._container(each) for each in containers]
            or [self._not_started(spec) for spec in pod["spec"]["containers"]],
        }

    def _condition(self, kind: str, holds: bool) -> Manifest:  # noqa: FBT001 - the status itself
        since = self._since.setdefault((kind, holds), now())
        self._since.pop((kind, not holds), None)
        return {"type": kind, "status": str(holds), "lastTransitionTime": since}

    def _container(self, container: Container) -> Manifest:
        return {
            **_identity(container.spec),
            "ready": container.ready,
            "started": "running" in container.state,
            "restartCount": container.restarts,
            "state": container.state,
            "lastState": container.last_state,
        }

    def _not_started(self, spec: Manifest) -> Manifest:
        state = waiting(*(self.problem or ("ContainerCreating", "")))
        return {**_identity(spec), "ready": False, "restartCount": 0, "state": state}


def phase(containers: Sequence[Container]) -> str:
    """Return the phase of a pod with these containers."""
    codes = [each.exit_code for each in containers]
    if not codes:
        return "Pending"
    if None in codes:
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _identity(spec: Manifest) -> Manifest:
    return {"name": spec["name"], "image": spec["image"], "imageID": ""}
