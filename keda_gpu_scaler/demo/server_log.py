"""What the server's log says: on which ports it listens, and why it decided as it did."""

import json
from dataclasses import dataclass

from keda_gpu_scaler.demo import scenario


@dataclass(slots=True)
class Words:
    """The state and the reason of the newest decision about the demo's ScaledObject."""

    state: str = ""
    reason: str = ""

    def hear(self, line: str) -> None:
        """Take the words from a log line, if it tells of a changed decision."""
        said = _event(line, "decision.changed")
        if _scaled_object(said) in {str(scenario.SCALED_OBJECT), scenario.SCALED_OBJECT.name}:
            self.state = str(said.get("state", ""))
            self.reason = str(said.get("reason", ""))


def _scaled_object(said: dict[str, object]) -> str:
    return str(said.get("scaled_object", ""))


def grpc_port(line: str) -> int | None:
    """Return the gRPC port if this line says that the server listens."""
    port = _event(line, "serve.listening").get("grpc_port")
    return port if isinstance(port, int) else None


def simulator_url(line: str) -> str | None:
    """Return the simulator's address if this line names it."""
    found = line.removeprefix("listening on ")
    return None if found == line else found.strip()


def _event(line: str, name: str) -> dict[str, object]:
    """Return the keys of a JSON log line of this event, or none."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) and said.get("event") == name else {}
