"""The status page over a real socket, as it is without a browser."""

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import httpx
import pytest
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import web
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.record.build import Answered, record, summary
from keda_gpu_scaler.record.record import PodCount, Record
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import History
from tests.support import showroom
from tests.support.showroom import Showroom
from tests.support.snapshots import NOW
from tests.support.triggers import BERT, spec
from tests.web.test_triggers import DECIDED, NAMES, TOKEN, Known, serving

CURVES = ("load", "value", "replicas", "replicas asked for")
MANY = [("ml", f"bert-{number:04}") for number in range(1100)]


class Elements(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str, attribute: str) -> list[str | None]:
        """Return an attribute of each element of one kind."""
        return [
            attrs[attribute] for name, attrs in self.found if name == tag and attribute in attrs
        ]


@asynccontextmanager
async def page(url: str, *, names: list[tuple[str, str]] = NAMES) -> AsyncIterator[httpx.Response]:
    noted = History(lambda: NOW)
    noted(facts.Evaluated(BERT, spec(), DECIDED, 1.0))
    async with (
        serving(names, changes=noted) as server,
        httpx.AsyncClient(base_url=server, trust_env=False) as client,
    ):
        yield await client.get(url)


async def test_every_trigger_is_a_row_that_leads_to_its_page() -> None:
    async with page("/") as answer:
        found = Elements(answer.text)
    assert answer.status_code == 200
    links = [link for link in found.of("a", "href") if link and link.startswith("/triggers/")]
    assert links == [f"/triggers/{namespace}/{name}" for namespace, name in NAMES]
    assert "5 of 5 triggers" in answer.text
    assert DECIDED.reason in answer.text


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("name=ml-2", 1),
        ("name=bert", 4),
        ("state=unknown", 0),
        ("state=measured", 5),
        ("state=odd", 5),
        ("show=active", 5),
        ("show=held", 0),
        ("show=idle&name=bert", 0),
    ],
)
async def test_a_list_is_filtered_by_its_address(asked: str, count: int) -> None:
    async with page(f"/?{asked}") as answer:
        assert f"{count} of 5 triggers" in answer.text


@pytest.mark.parametrize(
    ("sort", "direction"),
    [
        ("name", "ascending"),
        ("-name", "descending"),
        ("now", "ascending"),
        ("average", "descending"),
        ("-value", "ascending"),
        ("pods", "descending"),
        ("age", "descending"),
        ("nothing", "ascending"),
    ],
)
async def test_a_list_is_sorted_by_its_address(sort: str, direction: str) -> None:
    async with page(f"/?sort={sort}") as answer:
        heads = Elements(answer.text).of("th", "aria-sort")
    assert answer.status_code == 200
    assert heads == [direction]


async def test_a_namespace_has_a_list_of_its_own() -> None:
    async with page("/triggers/ml?name=bert-2") as answer:
        assert "1 of 3 triggers" in answer.text
        assert "/triggers/ml/bert-2" in Elements(answer.text).of("a", "href")


async def test_more_triggers_than_a_page_has_room_for_are_counted() -> None:
    async with page("/", names=MANY) as answer:
        assert "1000 of 1100 triggers" in answer.text
        assert "100 more are not shown" in answer.text


async def test_one_trigger_is_shown_with_everything_behind_it() -> None:
    async with page("/triggers/ml/bert") as answer:
        text = answer.text
    for words in (
        "bert-7b6667bd9-bbbbb",
        "its load is in the value",
        "What says active",
        "What the HPA makes of it",
        "activationThreshold",
        "PromQL: value",
        "Since this process watches",
        "90 % now",
    ):
        assert words in text
    assert Elements(text).of("svg", "class").count("curve") == len(CURVES)


async def test_nothing_comes_from_elsewhere_and_nothing_else_may() -> None:
    for path in ("/", "/triggers/ml/bert"):
        async with page(path) as answer:
            found = Elements(answer.text)
        loaded = found.of("link", "href") + found.of("script", "src") + found.of("img", "src")
        assert set(loaded) == {"/static/icon.svg", "/static/style.css", "/static/refresh.js"}
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert not found.of("script", "onload")
        assert not re.search(r"\sstyle=|\son[a-z]+=", answer.text)


@pytest.mark.parametrize("path", ["/static/style.css", "/static/refresh.js", "/static/icon.svg"])
async def test_what_a_page_loads_is_there(path: str) -> None:
    async with page(path) as answer:
        assert answer.status_code == 200


async def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    async with serving() as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        first = await client.get("/")
        again = await client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_list_in_json_has_what_the_page_has() -> None:
    async with page("/?format=json&name=ml/&sort=-name") as answer:
        found = answer.json()
    assert [one["scaled_object"] for one in found["triggers"]] == [
        "ml/bert-2",
        "ml/bert",
        "ml/bert",
    ]
    assert found["left_out"] == 0
    assert answer.headers["content-type"] == "application/json"


async def test_an_object_in_json_has_its_record_and_its_history() -> None:
    async with page("/triggers/ml/bert-2?format=json") as answer:
        found = answer.json()
    assert [one["scaled_object"] for one in found["triggers"]] == ["ml/bert-2"]
    assert (found["since"], found["changes"]) == (NOW, [])


async def test_an_object_that_nobody_asked_about_has_no_page() -> None:
    async with page("/triggers/ml/other") as answer:
        assert answer.status_code == 404


async def test_the_pages_are_behind_the_token() -> None:
    async with serving(token=TOKEN) as url, httpx.AsyncClient(trust_env=False) as client:
        for path in ("/", "/triggers/ml/bert", "/static/style.css"):
            assert (await client.get(url + path)).status_code == 401


async def test_no_text_becomes_markup() -> None:
    hostile = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    async with page(f"/?name={hostile}") as answer:
        found = Elements(answer.text)
    assert found.of("script", "src") == ["/static/refresh.js"]
    assert len([tag for tag, _ in found.found if tag == "script"]) == 1
    assert set(found.of("img", "src")) == {"/static/icon.svg"}
    assert found.of("input", "value")[0] == hostile


@dataclass
class Crowded(Known):
    """What is known of a workload with very many pods."""

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        """Return them with pods left out."""
        return [
            replace(one, pods_left_out=230, pod_counts=(PodCount("measured", 730),))
            for one in await super().records(scaled_object)
        ]


async def test_pods_that_are_not_listed_are_counted() -> None:
    shown = web.Shown(Crowded(NAMES), History(lambda: NOW))
    pages = web.create_app(CollectorRegistry(), lambda: True, shown=shown)
    transport = httpx.ASGITransport(app=pages)
    async with httpx.AsyncClient(transport=transport, base_url="http://scaler") as client:
        one = await client.get("/triggers/ml/bert")
    assert "230 more pods are not listed: 730 measured in all." in one.text


@asynccontextmanager
async def room(*workloads: showroom.Shown) -> AsyncIterator[tuple[httpx.AsyncClient, Showroom]]:
    """Serve the pages of a real evaluator on a made-up cluster."""
    opened = Showroom(workloads, minutes=3)
    app = web.create_app(CollectorRegistry(), lambda: True, shown=await opened.open())
    server = web.HttpServer(app, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{await server.start()}"
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            yield client, opened
    finally:
        await server.stop()
        await opened.evaluator.close()


def names(page_text: str) -> list[str | None]:
    """Return the rows of a list, in their order."""
    links = Elements(page_text).of("a", "href")
    return [link.rpartition("/")[2] for link in links if link and link.startswith("/triggers/")]


async def test_what_is_held_comes_first_and_what_is_not_known_is_sorted_last() -> None:
    async with room(*showroom.fleet()) as (client, _):
        text = (await client.get("/")).text
        assert names(text)[:3] == ["tts", "whisper", "sdxl"]
        assert names(text)[-2:] == ["phi-mini", "qwen-coder"]
        held = (await client.get("/?show=held&sort=name")).text
        assert names(held) == ["tts", "whisper", "sdxl"]
        for sort in ("value", "-value"):
            found = names((await client.get(f"/?sort={sort}")).text)
            assert set(found[-4:]) == {"tts", "whisper", "sdxl", "reranker"}


async def test_what_says_active_and_how_many_replicas_are_asked_for_is_in_the_list() -> None:
    async with room(*showroom.fleet()) as (client, _):
        found = (await client.get("/?format=json")).json()["triggers"]
    told = {one["scaled_object"]: (one["active_by"], one["recommended"]) for one in found}
    assert told["inference/llama-70b"] == ("gpus", 5)
    assert told["search/reranker"] == ("demand", 1)
    assert told["vision/yolo"] == ("alert", 1)
    assert told["inference/qwen-coder"] == (None, 0)
    assert told["speech/tts"] == (None, None)


async def test_the_last_number_of_a_pod_that_is_silent_is_no_load_of_now() -> None:
    async with room(*showroom.fleet()) as (client, _):
        text = (await client.get("/triggers/speech/tts")).text
    assert re.search(r"not known, last \d+", text)
    assert "up to" not in text
    assert Elements(text).of("svg", "class").count("bar") == 0


async def test_a_page_serves_all_who_ask_for_the_same_and_is_decided_again_later() -> None:
    async with room(*showroom.many(2)) as (client, opened):
        first = await client.get("/")
        opened.history.since -= 1  # nothing that the list shows
        one = await client.get("/triggers/team-00/model-0000")
        opened.history.since -= 60
        same = await client.get("/triggers/team-00/model-0000")
        other = await client.get("/triggers/team-00/model-0000?x")
    assert first.headers["etag"] != one.headers["etag"]
    assert same.content == one.content
    assert other.content != one.content


async def test_many_at_once_get_one_page() -> None:
    async with room(*showroom.many(40)) as (client, _):
        answers = await asyncio.gather(*(client.get("/") for _ in range(8)))
    assert len({answer.content for answer in answers}) == 1


async def test_an_object_that_is_asked_about_no_more_has_its_history() -> None:
    noted = History(lambda: NOW)
    noted(facts.Evaluated(BERT, spec(), DECIDED, 1.0))
    async with (
        serving((), changes=noted) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        text = (await client.get("/triggers/ml/bert")).text
    assert "KEDA has not asked this replica about it within ten minutes" in text
    assert Elements(text).of("svg", "class").count("curve") == len(CURVES)


async def test_an_object_without_history_has_no_curves() -> None:
    async with page("/triggers/ml/bert-2") as answer:
        assert "its load is in the value" in answer.text
        assert "curve" not in Elements(answer.text).of("svg", "class")


async def test_what_was_unknown_within_this_minute_is_not_drawn_over_what_is_known() -> None:
    unknown = replace(DECIDED, state=State.UNKNOWN, value=None, average=None, active=None)
    times = iter([NOW - 38, NOW - 36, NOW - 20])
    noted = History(lambda: next(times, NOW))
    noted(facts.Evaluated(BERT, spec(), unknown, None))
    noted(facts.Evaluated(BERT, spec(), DECIDED, 1))
    async with (
        serving(NAMES[:1], changes=noted) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        text = (await client.get("/")).text + (await client.get("/triggers/ml/bert")).text
    drawn = re.findall(r'class="gap" x="([\d.]+)".* width="([\d.]+)".*class="line" d="M(\S+)', text)
    assert len(drawn) == 4, "a value in the list; load, value and replicas asked for on the page"
    for gap, wide, line in drawn:
        assert float(gap) + float(wide) == pytest.approx(float(line), abs=0.2)


async def test_an_empty_list_says_what_to_look_at() -> None:
    async with page("/", names=[]) as answer:
        assert "see whether the ScaledObjects are Ready" in answer.text
    async with page("/?name=nowhere") as answer:
        assert "No trigger fits" in answer.text


async def test_all_that_is_wrong_with_a_source_is_on_the_page() -> None:
    troubled = dataclasses.replace(
        DECIDED, state=State.UNKNOWN, value=None, active=None, average=None, remembered=State.ENDED
    )
    made = Answered(
        scaled_object=BERT,
        spec=spec(),
        decision=troubled,
        now=NOW,
        trouble="HTTP 503",
        lag_seconds=90.0,
    )
    noted = History(lambda: NOW)
    noted(facts.Evaluated(BERT, spec(), troubled, None))
    async with (
        serving([BERT], changes=noted, records=[record(made)]) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        text = (await client.get("/triggers/ml/bert")).text
    for words in ("HTTP 503", "90 s", "ended", "no time", "not known", "held"):
        assert words in text


async def test_a_list_is_as_long_as_its_reasons_let_it_be_and_old_answers_have_their_age() -> None:
    wordy = dataclasses.replace(DECIDED, reason="so " * 999, active=None)
    told = summary(BERT, spec(signal="power", threshold="9", activationThreshold="2"), wordy, 200.0)
    async with (
        serving([BERT], summaries=[told]) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        text = (await client.get("/")).text
    assert "so so s…" in text
    assert "3 min ago" in text
    assert 'class="mark held"' in text
