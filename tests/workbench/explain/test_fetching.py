"""What holds the replicas, read from an API server on a real port."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.workbench.explain import fetching
from testbed.triggers import spec
from tests.support.answers import answering
from tests.support.records import record
from tests.support.snapshots import bert, snapshot

RECORDED = Path(__file__).parents[2] / "data" / "gates"
SCALED_OBJECT = "/apis/keda.sh/v1alpha1/namespaces/ml/scaledobjects/settling"
HPA = "/apis/autoscaling/v2/namespaces/ml/horizontalpodautoscalers/keda-hpa-settling"
SCALE = "/apis/apps/v1/namespaces/ml/deployments/settling/scale"
CORE_SCALE = "/api/v1/namespaces/ml/replicationcontrollers/settling/scale"
TOKEN = "only-for-tests"


@dataclass
class Kubernetes:
    """What an API server answers, and what it was asked."""

    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Each path with the value of the Authorization header."""

    @classmethod
    def of(cls, recorded: str, name: str = "settling") -> "Kubernetes":
        """Return one that has recorded objects under a name."""
        plain = json.loads((RECORDED / f"{recorded}.json").read_text())
        plain["scaledObject"]["status"]["hpaName"] = f"keda-hpa-{name}"
        plain["scaledObject"]["spec"]["scaleTargetRef"]["name"] = name
        found = zip((SCALED_OBJECT, HPA, SCALE), ("scaledObject", "hpa", "scale"), strict=True)
        return cls(
            {
                path.replace("settling", name): (200, json.dumps(plain[key]).encode())
                for path, key in found
                if plain[key]["kind"] != "Status"
            }
        )

    def change_status(self, **fields: object) -> None:
        """Give the ScaledObject's status these fields."""
        changed = json.loads(self.answers[SCALED_OBJECT][1])
        changed["status"] |= fields
        self.answers[SCALED_OBJECT] = (200, json.dumps(changed).encode())

    @contextmanager
    def serving(self, directory: Path) -> Iterator[Path]:
        """Serve on a free port; yield a kubeconfig that leads there."""
        with answering(self._answer) as port:
            yield kubeconfig(directory, port)

    def _answer(self, path: str, token: str | None) -> tuple[int, bytes]:
        self.asked.append((path, token))
        absent = json.dumps({"kind": "Status", "message": "there is\x1b[31m none"}).encode()
        return self.answers.get(path, (404, absent))


def kubeconfig(directory: Path, port: int) -> Path:
    path = directory / "kubeconfig"
    server = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    contexts = [{"name": "staging", "context": {"cluster": "c", "user": "u"}}]
    users = [{"name": "u", "user": {"token": TOKEN}}]
    parts = {"clusters": [server], "contexts": contexts, "users": users}
    path.write_text(json.dumps({**parts, "current-context": "staging"}))
    return path


def records(*loads: float | None) -> list[Record]:
    """Return a record for each load of one pod; None: nothing is known."""
    views = (snapshot() if load is None else snapshot(bert("b", load)) for load in loads)
    return [record(spec(), view) for view in views]


def asked(
    path: Path | None, *loads: float | None, context: str | None = None, timeout: float = 30
) -> Any:
    named = ScaledObject("ml", "settling")
    return asyncio.run(fetching.fetch_gates(named, records(*loads), path, context, timeout))


def first(shown: Any) -> str | None:
    """Return the first gate that holds; None: none does."""
    return shown.gates[0].name if shown.gates else None


def test_the_gates_come_from_three_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = Kubernetes.of("settling")
    began = time.time()
    with kubernetes.serving(tmp_path) as path:
        shown = asked(path, 90)
        monkeypatch.setenv("KUBECONFIG", str(path))
        assert first(asked(None, 90)) == "stabilization"
    assert (shown.cluster, first(shown), shown.replicas) == ("staging", "stabilization", 3)
    assert shown.asked == 2
    assert began <= shown.at <= time.time()
    assert kubernetes.asked[:3] == [
        (each, f"Bearer {TOKEN}") for each in (SCALED_OBJECT, HPA, SCALE)
    ]


@pytest.mark.parametrize(
    ("recorded", "loads", "gate", "most"),
    [
        ("asleep", [0], "activation", 0),
        ("asleep", [0, None], "activation", None),
        ("asleep", [0, 90], None, 2),
        ("asleep", [], "activation", None),
        ("near", [20, 90], "tolerance", 2),
    ],
)
def test_all_triggers_together_say_what_is_asked_for(
    recorded: str, loads: list[float | None], gate: str | None, most: int | None, tmp_path: Path
) -> None:
    with Kubernetes.of(recorded).serving(tmp_path) as path:
        shown = asked(path, *loads)
    assert (first(shown), shown.asked) == (gate, most)


NO_HPA = {"hpaName": "", "scaleTargetGVKR": None}
CONTROLLER = {"group": "", "version": "v1", "resource": "replicationcontrollers"}


@pytest.mark.parametrize(
    ("status", "absent", "gate", "replicas", "paths"),
    [
        # Before KEDA has looked there is no HPA to ask for.
        (NO_HPA, None, "hpa", None, [SCALED_OBJECT]),
        ({}, HPA, "hpa", 3, [SCALED_OBJECT, HPA, SCALE]),
        # Without the right to see the scale, the HPA knows the replicas.
        ({}, SCALE, "stabilization", 3, [SCALED_OBJECT, HPA, SCALE]),
        # Workloads of the core group have another path.
        (
            {"scaleTargetGVKR": CONTROLLER},
            None,
            "stabilization",
            3,
            [SCALED_OBJECT, HPA, CORE_SCALE],
        ),
    ],
    ids=["no look yet", "no HPA", "no right", "core group"],
)
def test_what_is_not_there_is_done_without(
    status: dict[str, object],
    absent: str | None,
    gate: str,
    replicas: int | None,
    paths: list[str],
    tmp_path: Path,
) -> None:
    kubernetes = Kubernetes.of("settling")
    kubernetes.change_status(**status)
    kubernetes.answers[CORE_SCALE] = kubernetes.answers[SCALE]
    if absent == SCALE:
        kubernetes.answers[SCALE] = 403, b'{"message": "no"}'
    elif absent is not None:
        del kubernetes.answers[absent]
    with kubernetes.serving(tmp_path) as path:
        shown = asked(path, 90)
    assert (first(shown), shown.replicas) == (gate, replicas)
    assert [each for each, _ in kubernetes.asked] == paths


@pytest.mark.parametrize(
    ("path", "status", "body", "said"),
    [
        (
            HPA,
            403,
            b'{"message": "User x cannot get it"}',
            "horizontalpodautoscalers.autoscaling ml/keda-hpa-settling: HTTP 403, User x cannot",
        ),
        (SCALED_OBJECT, 200, b"<html>", "cannot read"),
        (SCALED_OBJECT, 200, b"[" * 100_000, "cannot read"),
        (SCALED_OBJECT, 200, b"{}", "missing required field"),
    ],
    ids=["no right", "no JSON", "deep", "another shape"],
)
def test_what_cannot_be_read_is_said(
    path: str, status: int, body: bytes, said: str, tmp_path: Path
) -> None:
    kubernetes = Kubernetes.of("settling")
    kubernetes.answers[path] = status, body
    with kubernetes.serving(tmp_path) as way, pytest.raises(errors.SourceError) as caught:
        asked(way, 90)
    assert said in str(caught.value)


def test_a_name_that_would_lead_elsewhere_is_refused(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    kubernetes.change_status(hpaName="../../../secrets/all")
    with (
        kubernetes.serving(tmp_path) as path,
        pytest.raises(errors.SourceError, match="secrets/all' is not a name in Kubernetes"),
    ):
        asked(path, 90)
    assert len(kubernetes.asked) == 1


def test_control_characters_of_the_cluster_stop_at_the_door(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    said = {"type": "Ready", "status": "False", "reason": "\x1b]0;x\x07", "message": "a\u202eb\nc"}
    kubernetes.change_status(conditions=[said])
    with kubernetes.serving(tmp_path) as path:
        shown = asked(path, 90)
    [ready] = [gate for gate in shown.gates if gate.name == "ready"]
    assert ready.reason == "KEDA cannot work on the ScaledObject: a?b?c"
    assert ready.condition == "Ready=False/?]0;x?"


def test_a_cluster_that_cannot_be_asked_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        path = kubeconfig(tmp_path, silent.getsockname()[1])
        with pytest.raises(errors.SourceError, match=r"^no answer within 0\.2 s$"):
            asked(path, 90, timeout=0.2)
    with pytest.raises(errors.SourceError, match="Context 'other' not found"):
        asked(path, 90, context="other")
    with pytest.raises(errors.SourceError, match="cannot get scaledobjects"):
        asked(path, 90)
