"""`/api/v1/triggers` over a real socket."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import cast

import httpx
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import web
from keda_gpu_scaler.decision.decision import Context, decide
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.record.build import Answered
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import History
from testbed.showroom import Room
from testbed.triggers import BERT, evaluated, spec
from tests.support.browsing import browsing
from tests.support.snapshots import NOW, bert, snapshot
from tests.web.shown import answered

PATH = "/api/v1/triggers"
TOKEN = "a word"
DECIDED = decide(spec(), snapshot(bert("b", 90)), Context(NOW))
NAMES = [("ml", "bert"), ("ml", "bert"), ("ml", "bert-2"), ("ml-2", "bert"), ("web", "a")]


def answers(names: Iterable[tuple[str, str]] = NAMES) -> list[Answered]:
    """Return the answer to one trigger of each ScaledObject, all on the same workload."""
    return [
        answered(name, bert("b", 90), namespace=namespace, workload="bert")
        for namespace, name in names
    ]


@asynccontextmanager
async def serving(
    names: Iterable[tuple[str, str]] = NAMES,
    token: str | None = None,
    changes: History | None = None,
    *,
    summaries: Sequence[Summary] | None = None,
    records: Sequence[Record] | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve what is known on a free port; yield a client that knows no token."""
    known = cast("Evaluator", Room(answers(names), summaries, records))
    app = web.create_app(
        CollectorRegistry(),
        lambda: True,
        shown=web.Shown(known, changes or History(lambda: NOW), clock=lambda: NOW),
        token=None if token is None else lambda: token,
    )
    async with browsing(app) as client:
        yield client


async def test_a_list_shows_what_was_answered_last() -> None:
    async with serving() as client:
        answer = await client.get(PATH)
    content = answer.json()
    assert (len(content["triggers"]), content["next"]) == (5, None)
    assert content["triggers"][0] == {
        "scaled_object": "ml/bert",
        "workload": "deployment/bert",
        "metric_name": "gpu-utilization",
        "answered_seconds_ago": 1.5,
        "state": "measured",
        "value": 90,
        "active": True,
        "active_by": None,
        "average": 90,
        "threshold": 70,
        "unit": "%",
        "replicas": 1,
        "measured": 1,
        "never_seen": False,
        "unschedulable": 0,
        "unschedulable_since": None,
        "recommended": None,
        "reason": DECIDED.reason,
        "source_name": "default",
    }


async def test_a_long_list_comes_in_parts_and_nothing_is_left_out() -> None:
    names = [("ml", f"bert-{number:04}") for number in range(800) for _ in range(3)]
    sizes, seen, following = [], [], ""
    async with serving(names) as client:
        while following is not None:
            page = (await client.get(PATH, params={"after": following})).json()
            sizes.append(len(page["triggers"]))
            seen += [trigger["scaled_object"] for trigger in page["triggers"]]
            following = page["next"]
    assert sizes == [1002, 1002, 396]
    assert seen == ["/".join(name) for name in names]


async def test_one_scaled_object_is_shown_with_what_its_decision_was_made_of() -> None:
    async with serving() as client:
        records = (await client.get(f"{PATH}/ml/bert")).json()["triggers"]
        assert [record["version"] for record in records] == [1, 1]
        assert [pod["load"] for pod in records[0]["pods"]] == [90]
        missing = await client.get(f"{PATH}/ml/other")
    assert missing.status_code == 404
    assert "has not asked this replica" in missing.text


async def test_what_no_list_can_go_on_from_is_refused_by_name() -> None:
    async with serving() as client:
        answer = await client.get(PATH, params={"after": "a/b/c"})
    assert (answer.status_code, answer.text[:6]) == (400, "after:")


async def test_the_changes_of_a_scaled_object_are_shown_with_when_watching_began() -> None:
    noted = History(lambda: NOW)
    noted(evaluated(DECIDED, recommended=2))
    async with serving(changes=noted) as client:
        history = (await client.get(f"{PATH}/ml/bert/history")).json()
        other = (await client.get(f"{PATH}/ml/other/history")).json()
    (change,) = history["changes"]
    shown = ("at", "metric_name", "workload", "state", "value", "active", "recommended", "reason")
    expected = (NOW, "gpu-utilization", "deployment/bert", "measured", 90, True, 2, DECIDED.reason)
    assert tuple(change[name] for name in shown) == expected
    assert other == {"since": NOW, "changes": []}


async def test_a_refusal_is_the_reason_why_there_is_no_record_and_else_a_warning() -> None:
    history = History(lambda: NOW)
    for scaled_object in (BERT, ScaledObject("ml", "other")):
        history(facts.TriggerRefused(scaled_object, "treshold: unknown key"))
    async with serving(changes=history) as client:
        missing = await client.get(f"{PATH}/ml/other")
        page = await client.get("/triggers/ml/other")
        records = (await client.get(f"{PATH}/ml/bert")).json()["triggers"]
    refusal = "0 s ago KEDA was refused: treshold: unknown key"
    assert (missing.status_code, missing.text) == (404, refusal)
    assert (page.status_code, page.text) == (404, refusal)
    assert [record["warnings"] for record in records] == [[refusal]] * 2
