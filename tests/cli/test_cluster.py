"""What holds the replicas, read from an API server on a real port."""

import asyncio
import functools
import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli import cluster
from keda_gpu_scaler.decision.decision import Context, decide
from keda_gpu_scaler.record.build import Answered, record
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.support.processes import free_port
from tests.support.snapshots import NOW, bert, snapshot
from tests.support.triggers import BERT, spec

RECORDED = Path(__file__).parents[1] / "data" / "gates"
SCALED_OBJECT = "/apis/keda.sh/v1alpha1/namespaces/ml/scaledobjects/settling"
HPA = "/apis/autoscaling/v2/namespaces/ml/horizontalpodautoscalers/keda-hpa-settling"
SCALE = "/apis/apps/v1/namespaces/ml/deployments/settling/scale"
TOKEN = "only-for-tests"  # noqa: S105 - it opens nothing but the server below
HANG_SECONDS = 60


@dataclass
class Kubernetes:
    """What an API server answers, and what it was asked."""

    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Each path with the value of the Authorization header."""
    hangs: bool = False
    done: threading.Event = field(default_factory=threading.Event)

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

    @property
    def paths(self) -> list[str]:
        """The paths of the ScaledObject, the HPA and the scale."""
        return list(self.answers)

    def change(self, path: str, **fields: Any) -> None:  # noqa: ANN401 - any field
        """Merge fields into one of the objects."""
        changed = _merged(json.loads(self.answers[path][1]), fields)
        self.answers[path] = (200, json.dumps(changed).encode())

    @contextmanager
    def serving(self, directory: Path) -> Iterator[Path]:
        """Serve on a free port; yield a kubeconfig that leads there."""
        kubernetes = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kubernetes.asked.append((self.path, self.headers["Authorization"]))
                if kubernetes.hangs:
                    kubernetes.done.wait(HANG_SECONDS)
                absent = json.dumps({"kind": "Status", "message": "there is\x1b[31m none"}).encode()
                status, body = kubernetes.answers.get(self.path, (404, absent))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            serve = functools.partial(server.serve_forever, poll_interval=0.01)
            threading.Thread(target=serve, daemon=True).start()
            try:
                yield kubeconfig(directory, server.server_port)
            finally:
                self.done.set()
                server.shutdown()


def _merged(there: Any, fields: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    new = {
        key: _merged(there.get(key, {}), value) if isinstance(value, dict) else value
        for key, value in fields.items()
    }
    return {**there, **new}


def kubeconfig(directory: Path, port: int, context: str = "staging") -> Path:
    path = directory / "kubeconfig"
    server = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    contexts = [{"name": context, "context": {"cluster": "c", "user": "u"}}]
    users = [{"name": "u", "user": {"token": TOKEN}}]
    parts = {"clusters": [server], "contexts": contexts, "users": users}
    path.write_text(json.dumps({**parts, "current-context": context}))
    return path


def records(*loads: float | None) -> list[Record]:
    """Return a record for each load of one pod; None: nothing is known."""
    found = []
    for load in loads:
        view = snapshot() if load is None else snapshot(bert("b", load))
        decided = decide(spec(), view, Context(NOW, 3600))
        made = Answered(scaled_object=BERT, spec=spec(), decision=decided, now=NOW, view=view)
        found.append(record(made))
    return found


def asked(
    path: Path | None, *loads: float | None, context: str | None = None, timeout: float = 30
) -> Any:  # noqa: ANN401 - gates
    named = ScaledObject("ml", "settling")
    return asyncio.run(cluster.fetch_gates(named, records(*loads), path, context, timeout))


def found(path: Path, *loads: float | None, timeout: float = 30) -> Any:  # noqa: ANN401 - gates
    return asked(path, *(loads or (90,)), timeout=timeout)


def first(shown: Any) -> str | None:  # noqa: ANN401 - gates
    """Return the first gate that holds; None: none does."""
    return shown.gates[0].name if shown.gates else None


def test_the_gates_come_from_the_scaled_object_its_hpa_and_the_scale(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    began = time.time()
    with kubernetes.serving(tmp_path) as path:
        shown = found(path)
    assert (shown.cluster, first(shown), shown.replicas) == ("staging", "stabilization", 3)
    assert shown.asked == 2
    assert began <= shown.at <= time.time()
    paths = [SCALED_OBJECT, HPA, SCALE]
    assert kubernetes.asked == [(each, f"Bearer {TOKEN}") for each in paths]


def test_the_activity_is_that_of_all_triggers(tmp_path: Path) -> None:
    with Kubernetes.of("asleep").serving(tmp_path) as path:
        assert first(found(path, 0)) == "activation"
        assert first(found(path, 0, None)) == "activation"
        assert first(found(path, 0, 90)) is None
        assert first(asked(path)) == "activation"


def test_what_is_asked_for_is_the_most_of_all_triggers(tmp_path: Path) -> None:
    with Kubernetes.of("near").serving(tmp_path) as path:
        assert found(path, 20, 90).asked == 2
        assert found(path, 20, None).asked is None


def test_an_hpa_that_is_not_there_is_none(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    del kubernetes.answers[HPA]
    with kubernetes.serving(tmp_path) as path:
        assert first(found(path)) == "hpa"


def test_before_keda_has_looked_there_is_no_hpa_to_ask_for(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    kubernetes.change(SCALED_OBJECT, status={"hpaName": "", "scaleTargetGVKR": None})
    with kubernetes.serving(tmp_path) as path:
        shown = found(path)
    assert (first(shown), shown.replicas) == ("hpa", None)
    assert [each for each, _ in kubernetes.asked] == [SCALED_OBJECT]


def test_without_the_right_to_see_the_scale_the_hpa_knows_the_replicas(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    kubernetes.answers[SCALE] = 403, b'{"message": "no"}'
    with kubernetes.serving(tmp_path) as path:
        shown = found(path)
    assert (first(shown), shown.replicas) == ("stabilization", 3)


def test_workloads_of_the_core_group_have_another_path(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    target = {"group": "", "version": "v1", "resource": "replicationcontrollers"}
    kubernetes.change(SCALED_OBJECT, status={"scaleTargetGVKR": target})
    path_of_scale = "/api/v1/namespaces/ml/replicationcontrollers/settling/scale"
    kubernetes.answers[path_of_scale] = kubernetes.answers[SCALE]
    with kubernetes.serving(tmp_path) as path:
        assert found(path).replicas == 3
    assert kubernetes.asked[-1][0] == path_of_scale


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        pytest.param(
            SCALED_OBJECT,
            None,
            "cannot get scaledobjects.keda.sh ml/settling: HTTP 404, there is?[31m none",
            id="another cluster",
        ),
        pytest.param(
            HPA,
            (403, b'{"message": "User x cannot get it"}'),
            "cannot get horizontalpodautoscalers.autoscaling ml/keda-hpa-settling:"
            " HTTP 403, User x cannot get it",
            id="no right",
        ),
        pytest.param(SCALED_OBJECT, (200, b"<html>"), "cannot read", id="no JSON"),
        pytest.param(SCALED_OBJECT, (200, b"[" * 100_000), "cannot read", id="deep"),
        pytest.param(SCALED_OBJECT, (200, b"{}"), "missing required field", id="another shape"),
        pytest.param(
            SCALED_OBJECT,
            (200, b'{"x": "' + b"x" * 33 * 2**20 + b'"}'),
            "more than 33554432 bytes",
            id="too large",
        ),
    ],
)
def test_what_cannot_be_read_is_said(
    path: str, answer: tuple[int, bytes] | None, said: str, tmp_path: Path
) -> None:
    kubernetes = Kubernetes.of("settling")
    if answer is None:
        del kubernetes.answers[path]
    else:
        kubernetes.answers[path] = answer
    with kubernetes.serving(tmp_path) as way, pytest.raises(errors.SourceError) as caught:
        found(way)
    assert said in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_name_that_would_lead_elsewhere_is_refused(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    kubernetes.change(SCALED_OBJECT, status={"hpaName": "../../../secrets/all"})
    with kubernetes.serving(tmp_path) as path, pytest.raises(errors.SourceError) as caught:
        found(path)
    assert "'../../../secrets/all' is no name in Kubernetes" in str(caught.value)
    assert len(kubernetes.asked) == 1


def test_control_characters_of_the_cluster_stop_at_the_door(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    said = {"type": "Ready", "status": "False", "reason": "\x1b]0;x\x07", "message": "a\u202eb\nc"}
    kubernetes.change(SCALED_OBJECT, status={"conditions": [said]})
    with kubernetes.serving(tmp_path) as path:
        shown = found(path)
    [ready] = [gate for gate in shown.gates if gate.name == "ready"]
    assert ready.reason == "KEDA cannot work on the ScaledObject: a?b?c"
    assert ready.condition == "Ready=False/?]0;x?"


def test_a_server_that_hangs_is_given_up(tmp_path: Path) -> None:
    kubernetes = Kubernetes.of("settling")
    kubernetes.hangs = True
    with (
        kubernetes.serving(tmp_path) as path,
        pytest.raises(errors.SourceError, match=r"^no answer within 0\.2 s$"),
    ):
        found(path, timeout=0.2)


def test_where_nothing_listens_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(errors.SourceError, match="cannot get scaledobjects"):
        found(kubeconfig(tmp_path, free_port()))


@pytest.mark.parametrize("context", [None, "other"])
def test_a_context_is_chosen_by_its_name(context: str | None, tmp_path: Path) -> None:
    with Kubernetes.of("settling").serving(tmp_path) as path:
        if context is None:
            assert asked(path, 90).cluster == "staging"
        else:
            with pytest.raises(errors.SourceError, match="Context 'other' not found"):
                asked(path, 90, context=context)


def test_without_a_kubeconfig_the_environment_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Kubernetes.of("settling").serving(tmp_path) as path:
        monkeypatch.setenv("KUBECONFIG", str(path))
        assert first(asked(None, 90)) == "stabilization"


def test_a_kubeconfig_without_a_way_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("clusters: []\ncontexts: []\n")
    with pytest.raises(errors.SourceError, match="No current context"):
        found(path)
