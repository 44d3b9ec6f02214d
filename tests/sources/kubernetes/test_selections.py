"""Claims about label selectors of scale targets: read from an API server on a real port."""

import asyncio
from dataclasses import replace

import pytest
from starlette.responses import JSONResponse

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.sources.kubernetes import selections
from keda_gpu_scaler.sources.kubernetes.following import Following
from keda_gpu_scaler.spec.spec import FORGET_SECONDS, ScaledObject
from keda_gpu_scaler.spec.workload import Selected
from tests.sources.kubernetes.bench import (
    BERT,
    FORBIDDEN,
    PATIENCE_SECONDS,
    Bench,
    fetch_evidence,
    until,
    until_evidence,
)
from tests.support import api_server

MODEL = {"group": "example.com", "version": "v1", "kind": "Model", "resource": "models"}
SCALE = "/apis/example.com/v1/namespaces/ml/models/bert/scale"
PODS = Selected("ml", "models.example.com", "bert")
OWNER = PODS.selected_by


def _scaled(name: str, target: str) -> api_server.Json:
    reference = {"apiVersion": "example.com/v1", "kind": "Model", "name": target}
    scaled_object = api_server.scaled_object(name, **reference)
    return scaled_object | {"status": {"scaleTargetGVKR": MODEL}}


def _pod(name: str, **labels: str) -> api_server.Json:
    return api_server.pod(name, labels=labels)


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """Two of three pods belong to a Model, by its selector."""
    pods = [_pod("a", app="bert"), _pod("b", app="bert"), _pod("bert")]
    bench.api.objects[api_server.PODS] = pods
    bench.api.objects[api_server.SCALED_OBJECTS] = [_scaled("bert-scaler", "bert")]
    bench.api.selectors[SCALE] = "app=bert"
    return bench


def _ours(evidence: Evidence) -> set[str]:
    return {name for (_, name), pod in evidence.pods.items() if OWNER in pod.owners}


def _sure(evidence: Evidence) -> bool:
    return ("ml", OWNER) in evidence.selected


def _reads(bench: Bench) -> int:
    return sum(each.path == SCALE for each in bench.api.asked)


async def _read_again(bench: Bench, following: Following) -> None:
    """Let the time of the next reading come, and wait until it is over."""
    before = _reads(bench)
    bench.clock.seconds += selections.READ_SECONDS
    for path in api_server.PATHS:
        bench.api.end(path)
    await until(lambda: all(bench.api.watched(path) for path in api_server.PATHS))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while _reads(bench) == before:
            await following.target(BERT, PATIENCE_SECONDS)
            await asyncio.sleep(0.01)


async def test_the_pods_of_a_target_without_rules_are_those_it_selects(bench: Bench) -> None:
    async with bench.watching() as following:
        assert not (await fetch_evidence(following)).selected, "nobody asked"
        assert await following.target(BERT, PATIENCE_SECONDS) == PODS
        evidence = await fetch_evidence(following)
        assert _ours(evidence) == {"a", "b"}
        assert evidence.selected == {("ml", OWNER)}
        assert not (await fetch_evidence(following, {"web"})).selected
        bench.api.tell(api_server.PODS, "ADDED", _pod("c", app="bert"))
        await until_evidence(following, lambda evidence: _ours(evidence) == {"a", "b", "c"})
        bench.api.tell(api_server.PODS, "MODIFIED", _pod("c", app="gemma"))
        await until_evidence(following, lambda evidence: _ours(evidence) == {"a", "b"})
        bench.api.tell(api_server.PODS, "DELETED", _pod("b", app="bert"))
        evidence = await until_evidence(following, lambda evidence: evidence.pods["ml", "b"].ended)
        assert _ours(evidence) == {"a", "b"}


async def test_one_of_another_namespace_selects_nobody_here(bench: Bench) -> None:
    elsewhere = api_server.metadata("bert-scaler", namespace="web")
    bench.api.objects[api_server.SCALED_OBJECTS] = [
        _scaled("bert-scaler", "bert") | {"metadata": elsewhere}
    ]
    bench.api.selectors[SCALE.replace("/ml/", "/web/")] = "app=bert"
    async with bench.watching() as following:
        target = await following.target(ScaledObject("web", "bert-scaler"), PATIENCE_SECONDS)
        assert target == replace(PODS, namespace="web")
        assert not _ours(await fetch_evidence(following, {"ml", "web"}))


async def test_a_selector_that_changes_is_read_again(bench: Bench) -> None:
    async with bench.watching() as following:
        for _ in range(3):
            await following.target(BERT, PATIENCE_SECONDS)
        assert _reads(bench) == 1
        bench.api.tell(api_server.PODS, "ADDED", _pod("c", app="gemma"))
        bench.api.selectors[SCALE] = "app=gemma"
        await _read_again(bench, following)
        await until_evidence(following, lambda evidence: _ours(evidence) == {"c"})
        bench.clock.seconds += selections.READ_SECONDS
        await fetch_evidence(following, {"web"})
        await fetch_evidence(following)
        await until(lambda: _reads(bench) == 3)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "the selector of models.example.com/bert in ml: it is empty, which would be every"),
        (
            "!app",
            "the selector of models.example.com/bert in ml: '!app' is no label with one value",
        ),
        (
            FORBIDDEN,
            r"cannot get models.example.com/scale \(models.example.com/bert in ml\): HTTP 403",
        ),
        (JSONResponse([]), "an answer of another shape: Expected `object`, got `array`"),
    ],
    ids=["empty", "garbage", "forbidden", "shape"],
)
async def test_a_selector_that_was_never_known_is_a_reason(
    bench: Bench, answer: str | JSONResponse, message: str
) -> None:
    bench.api.selectors[SCALE] = answer
    async with bench.watching() as following:
        with pytest.raises(errors.SourceRefusedError, match=message):
            await following.target(BERT, PATIENCE_SECONDS)
        evidence = await fetch_evidence(following)
        assert not evidence.selected
        assert not _ours(evidence)
    (lost,) = bench.changes("models.example.com/scale")
    assert not lost.works


async def test_a_selector_that_takes_long_is_neither_waited_for_nor_trouble(bench: Bench) -> None:
    bench.api.objects[api_server.SCALED_OBJECTS].append(_scaled("slow-scaler", "slow"))
    bench.api.held = {SCALE.replace("bert", "slow")}
    async with bench.watching() as following:
        with pytest.raises(errors.SourceRefusedError, match="its selector was not read yet"):
            await following.target(ScaledObject("ml", "slow-scaler"), 0.1)
        await following.target(BERT, PATIENCE_SECONDS)
    assert [fact.works for fact in bench.changes("models.example.com/scale")] == [True]


async def test_a_selector_that_was_known_is_trusted_for_a_minute(bench: Bench) -> None:
    async with bench.watching() as following:
        await following.target(BERT, PATIENCE_SECONDS)
        bench.api.selectors[SCALE] = FORBIDDEN
        for _ in range(4):
            await _read_again(bench, following)
            assert _sure(await until_evidence(following, bool))
        await _read_again(bench, following)
        evidence = await until_evidence(following, lambda evidence: not _sure(evidence))
        assert _ours(evidence) == {"a", "b"}, "what was known of them stays"
        assert await following.target(BERT, PATIENCE_SECONDS) == PODS
        bench.api.selectors[SCALE] = "app=bert"
        await _read_again(bench, following)
        await until_evidence(following, _sure)
        bench.api.selectors[SCALE] = ""
        await _read_again(bench, following)
        evidence = await until_evidence(following, lambda evidence: not _sure(evidence))
        assert _ours(evidence) == {"a", "b"}, "an empty one is not trusted for a moment"
    stated = bench.changes("models.example.com/scale")
    assert [fact.works for fact in stated] == [True, False, True, False]
    assert "HTTP 403, x is forbidden: User y" in stated[1].reason


async def test_what_nobody_uses_any_more_is_forgotten(bench: Bench) -> None:
    bench.api.selectors[SCALE] = FORBIDDEN
    async with bench.watching() as following:
        with pytest.raises(errors.SourceRefusedError):
            await following.target(BERT, PATIENCE_SECONDS)
        bench.clock.seconds += FORGET_SECONDS + 1
        for path in api_server.PATHS:
            bench.api.end(path)
        await until_evidence(following, bool)
    assert _reads(bench) == 1
    assert [fact.works for fact in bench.changes("models.example.com/scale")] == [False, True]


@pytest.mark.slow
async def test_no_more_selectors_are_read_than_the_limit(bench: Bench) -> None:
    names = [f"bert-{number}" for number in range(selections.LIMIT + 1)]
    bench.api.objects[api_server.SCALED_OBJECTS] = [_scaled(name, name) for name in names]
    bench.api.page_objects = len(names)
    for name in names:
        bench.api.selectors[SCALE.replace("bert", name)] = "app=bert"
    async with bench.watching() as following:
        asked = [following.target(ScaledObject("ml", name), PATIENCE_SECONDS) for name in names]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [each for each in answers if isinstance(each, errors.SourceRefusedError)]
    assert len(refused) == 1
    assert "500 other selectors are read already" in str(refused[0])
    assert all(isinstance(each, Selected) for each in answers if each not in refused)


@pytest.mark.parametrize(
    ("selected", "left_out"),
    [
        (("StatefulSet", "bert"), ("StatefulSet", "bert-0")),
        (("Role", "decode"), ("Role", "decode")),
    ],
    ids=["a worker of a group", "another pod of the same owner"],
)
async def test_a_selector_that_leaves_out_pods_of_a_replica_is_not_trusted(
    bench: Bench, selected: tuple[str, str], left_out: tuple[str, str]
) -> None:
    """It is made for the HPA, which counts replicas: it selects one pod of each."""
    worker = api_server.pod("bert-0-1", left_out)
    without_gpu = api_server.pod("proxy-0", left_out) | {"spec": {"containers": [{"name": "x"}]}}
    ours = api_server.pod("bert-0", selected, {"app": "bert"})
    bench.api.objects[api_server.PODS] = [ours, worker, without_gpu]
    async with bench.watching() as following:
        await following.target(BERT, PATIENCE_SECONDS)
        assert not _sure(await fetch_evidence(following))
        (last,) = bench.changes("models.example.com/scale")[-1:]
        assert "leaves out bert-0-1, which belongs to selected pods" in str(last)
        bench.api.tell(api_server.PODS, "DELETED", worker)
        assert _ours(await until_evidence(following, _sure)) == {"bert-0"}
        assert bench.changes("models.example.com/scale")[-1] != last
