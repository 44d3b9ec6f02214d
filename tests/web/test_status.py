"""The status page over a real socket, as it is without a browser."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any, cast

import httpx
import pytest
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import web
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.summary import Summary, summarized
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.shared_source import SourceDown
from keda_gpu_scaler.record.build import Answered, record
from keda_gpu_scaler.record.record import PodCount, Record
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.history import History
from keda_gpu_scaler.web import status
from testbed.showroom import Room
from testbed.triggers import BERT, evaluated, spec
from tests.support.browsing import browsing
from tests.support.snapshots import NOW
from tests.web.shown import fleet, room
from tests.web.test_triggers import DECIDED, NAMES, answers, serving

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
ROWS_OF_A_TIMELINE = 4


class Elements(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def of(self, tag: str, attribute: str) -> list[str | None]:
        return [
            attrs[attribute] for name, attrs in self.elements if name == tag and attribute in attrs
        ]

    @property
    def rows(self) -> list[str]:
        """The ScaledObjects of a list, in their order."""
        links = [link or "" for link in self.of("a", "href")]
        return [link.removeprefix("/triggers/") for link in links if link.startswith("/triggers/")]

    @property
    def drawings(self) -> int:
        """How many rows timelines have."""
        return self.of("svg", "aria-hidden").count("true") - self.of("svg", "class").count("axis")


def noted(decided: Decision = DECIDED) -> History:
    """Return the history of one decision about BERT, ten minutes ago."""
    times = iter([NOW - 600, NOW - 600])
    history = History(lambda: next(times, NOW))
    history(evaluated(decided))
    return history


@asynccontextmanager
async def page(
    url: str,
    *,
    names: list[tuple[str, str]] = NAMES,
    history: History | None = None,
    summaries: list[Summary] | None = None,
    records: list[Record] | None = None,
) -> AsyncIterator[httpx.Response]:
    served = serving(names, changes=history or noted(), summaries=summaries, records=records)
    async with served as client:
        yield await client.get(url)


def made(decided: Decision = DECIDED, **more: Any) -> Record:
    return record(Answered(scaled_object=BERT, spec=spec(), decision=decided, now=NOW, **more))


WORDY = replace(DECIDED, reason="so " * 999, active=None)
TROUBLED = replace(
    DECIDED, state=State.UNKNOWN, value=None, active=None, average=None, remembered=State.ENDED
)
COUNTS = (PodCount("measured", 729), PodCount("ended", 1))
OF_BERT = "/triggers/ml/bert"
PAGES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "every trigger is a row": ("/", {}, ["5 of 5 triggers", DECIDED.reason]),
    "a long reason is cut, and an old answer has its age": (
        "/",
        {"summaries": [replace(evaluated(WORDY).summary, answered_seconds_ago=200)]},
        ["so so s…", "3 min ago", 'class="mark held">held'],
    ),
    "replicas that are unschedulable are counted in a row": (
        "/",
        {"summaries": [evaluated(replace(WORDY, unschedulable=3)).summary]},
        [", 3 unschedulable"],
    ),
    "a workload that no exporter ever showed has a mark, and numbers are rounded": (
        "/",
        {"summaries": [evaluated(replace(DECIDED, never_seen=True, value=61.4286)).summary]},
        ['class="mark unseen">never seen', ">61.4<"],
    ),
    "everything behind a trigger": (
        OF_BERT,
        {},
        [
            *("bert-7b6667bd9-bbbbb", "its load is in the value", "1 now", "answers"),
            *("Activation inputs", "What the HPA makes of it", "activationThreshold"),
            *("PromQL: value", "Changes: 1", "Average load<span"),
        ],
    ),
    "an object that is asked about no more has its history": (
        OF_BERT,
        {"names": []},
        ["KEDA has not asked this replica about it within ten minutes"],
    ),
    "of two with the same name the one that was asked about last": (
        OF_BERT,
        {"records": [replace(made(), reason="asked last"), made()]},
        ["asked last"],
    ),
    "pods that are not listed are counted": (
        OF_BERT,
        {"records": [replace(made(), pods_left_out=230, pod_counts=COUNTS)]},
        ["729 measured, 1 ended; 230 of them are not listed"],
    ),
    "all that is wrong with a source": (
        OF_BERT,
        {
            "history": noted(TROUBLED),
            "records": [made(TROUBLED, trouble="HTTP 503", lag_seconds=90.0)],
        },
        [
            *("in trouble", "HTTP 503", "90 s", "Known last: ended", "no time", "not known"),
            *('class="mark held">held', 'class="unknown"'),
        ],
    ),
}


@pytest.mark.parametrize(("path", "given", "words"), PAGES.values(), ids=PAGES)
async def test_what_a_page_shows(path: str, given: dict[str, Any], words: list[str]) -> None:
    async with page(path, **given) as answer:
        assert answer.status_code == 200
        assert [each for each in words if each not in answer.text] == []
        if path == OF_BERT:
            assert Elements(answer.text).drawings == ROWS_OF_A_TIMELINE


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "5 of 5"),
        ("/?name=ml-2", "1 of 5"),
        ("/?name=bert&show=active", "4 of 5"),
        ("/?name=nowhere", "0 of 5"),
        ("/?show=held", "0 of 5"),
        ("/?show=odd", "5 of 5"),
        ("/triggers/ml", "3 of 3"),
        ("/triggers/ml?name=bert-2", "1 of 3"),
    ],
)
async def test_a_list_is_filtered_by_its_address(path: str, shown: str) -> None:
    async with page(path) as answer:
        assert f"{shown} triggers" in answer.text
        assert ("No trigger fits" in answer.text) is shown.startswith("0")
        assert len(Elements(answer.text).rows) == int(shown.split(maxsplit=1)[0])


async def test_more_triggers_than_a_page_has_room_for_are_counted() -> None:
    async with page("/", names=[("ml", f"bert-{number:04}") for number in range(1100)]) as answer:
        assert len(Elements(answer.text).rows) == status.ROWS
        assert "1000 of 1100 triggers" in answer.text
        assert "100 more are not shown" in answer.text


@pytest.mark.parametrize("path", ["/", "/triggers/ml/bert"])
async def test_nothing_comes_from_elsewhere_and_nothing_else_may(path: str) -> None:
    async with page(path) as answer:
        parsed = Elements(answer.text)
        policy = answer.headers["content-security-policy"]
    loaded = parsed.of("link", "href") + parsed.of("script", "src")
    assert sorted(filter(None, loaded)) == [
        "/static/icon.svg",
        "/static/refresh.js",
        "/static/style.css",
    ]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"\sstyle=|\son[a-z]+=", answer.text)
    for resource in filter(None, loaded):
        async with page(resource) as answer:
            assert answer.status_code == 200


async def test_no_text_becomes_markup() -> None:
    decided = replace(DECIDED, reason=HOSTILE)
    listed = evaluated(decided).summary
    shown: dict[str, Any] = {"summaries": [listed], "records": [made(decided)]}
    for path in (f"/?name={HOSTILE}", "/", OF_BERT):
        async with page(path, history=noted(decided), **shown) as answer:
            parsed = Elements(answer.text)
        assert [tag for tag, _ in parsed.elements].count("script") == 1
        assert "img" not in [tag for tag, _ in parsed.elements]
        assert "alert(1)" in answer.text


@dataclass
class Slow(Room):
    """Decides nothing before it may, and counts who wait for it."""

    may: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        self.waiting.release()
        await self.may.wait()
        return await super().records(scaled_object)


async def test_a_few_pages_are_made_at_a_time_and_the_others_wait() -> None:
    slow = Slow(answers())
    shown = web.Shown(cast("Evaluator", slow), noted(), clock=lambda: NOW)
    async with browsing(web.create_app(CollectorRegistry(), lambda: True, shown=shown)) as client:
        pages = [asyncio.create_task(client.get(OF_BERT)) for _ in range(20)]
        for _ in range(status.AT_ONCE):
            await slow.waiting.acquire()
        assert (await client.get("/healthz")).text == "ok\n"
        assert slow.waiting.locked()
        slow.may.set()
        assert {(await each).status_code for each in pages} == {200}


HELD = replace(DECIDED, state=State.UNKNOWN, value=None, reason="HTTP 404 and what to do")
AWAY = SourceDown("default", "http://prometheus:9090", "HTTP 404; set url", 120.0)
ELSEWHERE = SourceDown("other", "http://other:9090", "no answer yet", 1.0)


@pytest.mark.parametrize(("path", "is_confined"), [("/", False), ("/triggers/ml", True)])
async def test_a_source_that_is_down_is_said_once_with_how_many_triggers_it_holds(
    path: str, is_confined: bool
) -> None:
    told = [
        *(summarized(ScaledObject("ml", name), spec(), HELD) for name in ("bert", "llm")),
        summarized(ScaledObject("ml", "old"), spec(), DECIDED),
    ]
    seen = web.Shown(
        cast("Evaluator", Room([], told, down=[AWAY, ELSEWHERE])), noted(), clock=lambda: NOW
    )
    async with browsing(web.create_app(CollectorRegistry(), lambda: True, shown=seen)) as client:
        text = (await client.get(path)).text
    since = datetime.fromtimestamp(NOW - 120, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    assert (
        f"Source default at http://prometheus:9090 has not answered since {since}: "
        "HTTP 404; set url. 2 of its triggers hold." in text
    )
    assert text.count("source default does not answer") == 2
    assert HELD.reason not in text
    assert DECIDED.reason in text
    assert ("Source other" in text) is not is_confined


async def test_what_is_held_comes_first_and_a_silent_pod_has_no_load_of_now() -> None:
    app = web.create_app(CollectorRegistry(), lambda: True, shown=room(fleet()))
    async with browsing(app) as client:
        rows = Elements((await client.get("/")).text).rows
        active = ["inference/llama-70b", "vision/yolo"]
        assert rows == ["speech/tts", *active, "inference/qwen-coder"]
        held = await client.get("/?show=held")
        assert Elements(held.text).rows == rows[:1]
        silent = (await client.get("/triggers/speech/tts")).text
        assert re.search(r"not known, last \d+", silent)
        assert "up to" not in silent.partition("Pods, the least busy first")[2]
