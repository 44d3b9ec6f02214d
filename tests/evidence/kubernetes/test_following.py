"""Following a cluster: this client against an API server on a real port that can fail."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence import kubernetes
from keda_gpu_scaler.evidence.kubernetes import api as client
from keda_gpu_scaler.evidence.kubernetes import objects, reflector
from keda_gpu_scaler.evidence.kubernetes.api import (
    LINE_BYTES,
    PAGE_BYTES,
    SILENCE_SECONDS,
    WATCH_SECONDS,
    Api,
)
from keda_gpu_scaler.evidence.kubernetes.following import API_SERVER, PODS
from keda_gpu_scaler.evidence.kubernetes.reflector import Listing, Reflector
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import Kind, Owner, Workload
from keda_gpu_scaler.telemetry import facts
from tests.evidence.kubernetes.bench import (
    AT,
    BERT,
    FORBIDDEN,
    PATIENCE_SECONDS,
    Bench,
    fetch_evidence,
    until,
    until_evidence,
)
from tests.support import api_server
from tests.support.scripted import Clock

REPLICA_SET = Owner("ReplicaSet", "bert-5d4f8")
DEPLOYMENT = Owner("Deployment", "bert")
SHAPE = "an answer of another shape: "


@contextlib.asynccontextmanager
async def asking(silence_seconds: float = SILENCE_SECONDS) -> AsyncIterator[Api]:
    """Ask the cluster that the environment names, without following it."""
    api = Api(silence_seconds=silence_seconds)
    try:
        yield api
    finally:
        await api.close()


def _bert(suffix: str, *, ready: bool = True) -> api_server.Json:
    name = f"bert-5d4f8-{suffix * 5}"
    return api_server.pod(name, ("ReplicaSet", "bert-5d4f8"), ready=ready)


def _name(suffix: str) -> tuple[str, str]:
    return "ml", f"bert-5d4f8-{suffix * 5}"


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.api.objects[api_server.PODS] = [_bert("a")]
    owned = api_server.metadata("bert-5d4f8", ("Deployment", "bert"))
    bench.api.objects[api_server.REPLICA_SETS] = [{"metadata": owned}]
    scaled = api_server.scaled_object("bert-scaler", kind="StatefulSet", name="bert")
    bench.api.objects[api_server.SCALED_OBJECTS] = [scaled]
    return bench


async def test_pods_are_listed_with_their_owners_and_the_owners_of_those(bench: Bench) -> None:
    nightly = api_server.metadata("nightly-1", ("CronJob", "nightly"))
    bench.api.objects[api_server.JOBS] = [{"metadata": nightly}]
    more = [api_server.pod("nightly-1-x", ("Job", "nightly-1")), api_server.pod("alone")]
    bench.api.objects[api_server.PODS] += more
    async with bench.watching() as following:
        evidence = await fetch_evidence(following)
        elsewhere = await fetch_evidence(following, {"web"})
    assert {name: pod.owners for (_, name), pod in evidence.pods.items()} == {
        "bert-5d4f8-aaaaa": {REPLICA_SET, DEPLOYMENT},
        "nightly-1-x": {Owner("Job", "nightly-1"), Owner("CronJob", "nightly")},
        "alone": set(),
    }
    assert evidence.evidence_source is EvidenceSource.KUBERNETES
    assert evidence.covered == {"ml"}
    assert elsewhere.covered == {"web"}
    assert not elsewhere.pods
    assert evidence.is_whole
    assert elsewhere.is_whole


async def test_the_newest_replica_set_says_how_many_replicas_its_owner_asks_for(
    bench: Bench,
) -> None:
    """Older ones may still note an older number; one that cannot be followed says nothing."""
    for revision, count in ((9, 3), (10, 12), (2, 8)):
        notes = {"desired-replicas": f"{count}", "revision": f"{revision}"}
        annotations = {f"deployment.kubernetes.io/{key}": text for key, text in notes.items()}
        owned = api_server.metadata(
            f"bert-{revision}", ("Deployment", "bert"), annotations=annotations
        )
        bench.api.objects[api_server.REPLICA_SETS].append({"metadata": owned})
    async with bench.watching() as following:
        assert (await fetch_evidence(following)).wanted == {("ml", DEPLOYMENT): 12}
        assert not (await fetch_evidence(following, {"web"})).wanted
    bench.api.trouble[api_server.REPLICA_SETS, "list"] = FORBIDDEN
    async with bench.watching() as following:
        evidence = await fetch_evidence(following)
    assert not evidence.wanted
    assert evidence.pods[_name("a")].owners == {REPLICA_SET}, "the pods say so themselves"


async def test_deployments_are_listed_by_their_replica_sets_where_anything_runs(
    bench: Bench,
) -> None:
    for name, owner in (("idle-1", ("Deployment", "idle")), ("ro-1", ("Rollout", "ro"))):
        owned = api_server.metadata(name, owner)
        bench.api.objects[api_server.REPLICA_SETS].append({"metadata": owned})
    async with bench.watching() as following:
        evidence = await fetch_evidence(following)
        assert evidence.owners == {("ml", "Deployment"): {"bert", "idle"}}
        assert not (await fetch_evidence(following, {"web"})).owners
    bench.api.trouble[api_server.REPLICA_SETS, "list"] = FORBIDDEN
    async with bench.watching() as following:
        assert not (await fetch_evidence(following)).owners


async def test_only_metadata_is_asked_for_where_that_is_enough(bench: Bench) -> None:
    async with bench.watching():
        pass
    full = "application/json"
    for path in api_server.PATHS:
        (listed,), (watched,) = (bench.api.of(path, watches=each) for each in (False, True))
        if path in (api_server.PODS, api_server.SCALED_OBJECTS):
            assert (listed.accept, watched.accept) == (full, full)
        else:
            kind = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
            assert (listed.accept, watched.accept) == (kind.format("List"), kind.format(""))


async def test_a_long_list_comes_in_pages_and_is_watched_from_its_version(bench: Bench) -> None:
    bench.api.objects[api_server.PODS] = [_bert(letter) for letter in "abcde"]
    async with bench.watching() as following:
        assert len((await fetch_evidence(following)).pods) == 5
    pages = [each.query for each in bench.api.of(api_server.PODS, watches=False)]
    assert pages == [
        {"limit": "100"},
        {"limit": "100", "continue": "2"},
        {"limit": "100", "continue": "4"},
    ]
    (watch,) = bench.api.of(api_server.PODS, watches=True)
    assert watch.query == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "15",
    }


async def test_changes_are_listed_as_they_come(bench: Bench) -> None:
    pod = _bert("b", ready=False)
    pod["metadata"]["annotations"] = {"breaks no line": "next \x85, line \u2028, paragraph \u2029"}
    async with bench.watching() as following:
        bench.api.tell(api_server.PODS, "ADDED", pod)
        evidence = await until_evidence(following, lambda evidence: len(evidence.pods) == 2)
        assert evidence.pods[_name("b")].ready is False
        bench.api.tell(api_server.PODS, "MODIFIED", _bert("b"))
        await until_evidence(following, lambda evidence: evidence.pods[_name("b")].ready is True)
        bench.api.tell(api_server.PODS, "DELETED", _bert("b"))
        evidence = await until_evidence(following, lambda evidence: evidence.pods[_name("b")].ended)
        assert not evidence.pods[_name("a")].ended
        assert not (await fetch_evidence(following, {"web"})).pods
        bench.api.tell(api_server.PODS, "ADDED", _bert("b"))
        await until_evidence(following, lambda evidence: not evidence.pods[_name("b")].ended)
        bench.api.tell(api_server.PODS, "DELETED", _bert("b"))
        await until_evidence(following, lambda evidence: evidence.pods[_name("b")].ended)
        bench.clock.seconds += reflector.GONE_SECONDS + 1
        bench.api.end(api_server.PODS)
        await until_evidence(following, lambda evidence: evidence.pods.keys() == {_name("a")})
    assert [fact.works for fact in bench.changes("pods")] == [True]


async def test_a_watch_that_ends_by_its_time_goes_on_where_it_was(bench: Bench) -> None:
    async with bench.watching():
        metadata = {"resourceVersion": "44", "creationTimestamp": None}
        mark = {"kind": "Pod", "metadata": metadata, "spec": {"containers": None}, "status": {}}
        bench.api.tell(api_server.PODS, "BOOKMARK", mark)
        bench.api.end(api_server.PODS)
        await until(lambda: len(bench.api.of(api_server.PODS, watches=True)) == 2)
    versions = [
        each.query["resourceVersion"] for each in bench.api.of(api_server.PODS, watches=True)
    ]
    assert versions == ["7", "44"]
    assert len(bench.api.of(api_server.PODS, watches=False)) == 1


@pytest.mark.parametrize("where", ["in the watch", "before it"])
async def test_a_version_that_expired_is_followed_by_a_new_list(bench: Bench, where: str) -> None:
    async with bench.watching() as following:
        bench.api.objects[api_server.PODS] = [_bert("b")]
        if where == "in the watch":
            bench.api.tell(api_server.PODS, "ERROR", api_server.status(410, "too old"))
        else:
            bench.api.trouble[api_server.PODS, "watch"] = api_server.failure(410, "too old")
            bench.clock.seconds += WATCH_SECONDS
            bench.api.end(api_server.PODS)
        evidence = await until_evidence(following, lambda evidence: _name("b") in evidence.pods)
    assert evidence.pods[_name("a")].ended
    assert [fact.works for fact in bench.changes("pods")] == [True]


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("cut", "cannot watch pods: "),
        ('{"type": "ADDED", "obj', "cannot watch pods: an answer of another shape: Input data was"),
    ],
    ids=["a connection", "a line"],
)
async def test_a_watch_that_is_cut_proves_nothing_until_there_is_a_new_list(
    bench: Bench, last: str, reason: str
) -> None:
    async with bench.watching() as following:
        bench.api.objects[api_server.PODS] = [_bert("b")]
        bench.api.end(api_server.PODS, last)
        bench.api.end(api_server.PODS)
        await until(lambda: len(bench.changes("pods")) == 2)
        with pytest.raises(errors.SourceError, match=reason):
            await fetch_evidence(following)
        evidence = await until_evidence(following, lambda evidence: _name("b") in evidence.pods)
    assert evidence.pods[_name("a")].ended
    assert [fact.works for fact in bench.changes("pods")] == [True, False, True]


@pytest.mark.parametrize(
    ("verb", "trouble", "message"),
    [
        ("list", FORBIDDEN, "HTTP 403, x is forbidden: User y"),
        ("watch", FORBIDDEN, "HTTP 403, x is forbidden: User y"),
        ("list", PlainTextResponse("bad gateway", 502), "HTTP 502, no reason given"),
        ("list", PlainTextResponse("hello"), f"{SHAPE}JSON is malformed"),
        ("list", JSONResponse({"items": []}), f"{SHAPE}Object missing required field `metadata`"),
        (
            "list",
            JSONResponse({"metadata": {"resourceVersion": "1"}, "items": [{}]}),
            f"{SHAPE}Object missing required field `metadata` - at `$.items[0]`",
        ),
        ("list", Response(b"[" * (PAGE_BYTES + 1)), "an answer of more than 33554432 bytes"),
        ("watch", Response(b" " * (LINE_BYTES + 1)), "a line of more than 8388608 bytes"),
        ("watch", Response(b""), "it ended early, without a word"),
        ("list", Response(status_code=304), "HTTP 304, no reason given"),
    ],
    ids=[
        "no list",
        "no watch",
        "proxy",
        "garbage",
        "shape",
        "object",
        "large",
        "long line",
        "empty",
        "moved",
    ],
)
async def test_an_answer_that_is_none_is_a_reason_with_verb_and_resource(
    bench: Bench, verb: str, trouble: Response, message: str
) -> None:
    bench.api.trouble[api_server.PODS, verb] = trouble
    async with bench.following() as following:
        await until(lambda: bool(bench.changes("pods") and not bench.changes("pods")[-1].works))
        with pytest.raises(errors.SourceError) as refused:
            await fetch_evidence(following)
    assert str(refused.value).startswith(f"cannot {verb} pods: {message}")


async def test_a_page_that_is_too_large_is_followed_by_a_short_one(bench: Bench) -> None:
    bench.api.trouble[api_server.PODS, "list"] = Response(b" " * (PAGE_BYTES + 1))
    async with bench.following():
        await until(lambda: bool(bench.changes("pods")))
    limits = [each.query["limit"] for each in bench.api.of(api_server.PODS, watches=False)]
    assert limits[:2] == ["100", "5"]


async def test_more_objects_than_any_cluster_has_are_a_reason(bench: Bench) -> None:
    bench.api.objects[api_server.PODS] = [api_server.pod(name) for name in "abcd"]
    few = PODS._replace(most=3)
    async with asking() as api, asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        followed = Reflector(api, few, objects.pod, bench.seen.append, bench.clock)
        following = tasks.create_task(followed.run())
        await followed.wait_for_first_list()
        following.cancel()
    assert "more than 3 pods" in (followed.trouble or "")


async def test_a_watch_brings_no_more_objects_than_a_list(bench: Bench) -> None:
    bench.api.objects[api_server.PODS] = [api_server.pod(name) for name in "ab"]
    few = PODS._replace(most=3)
    async with asking() as api, asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        followed = Reflector(api, few, objects.pod, bench.seen.append, bench.clock)
        following = tasks.create_task(followed.run())
        await until(lambda: bench.api.watched(api_server.PODS))
        for kind, name in [("MODIFIED", "a"), ("DELETED", "b"), ("DELETED", "b"), ("ADDED", "c")]:
            bench.api.tell(api_server.PODS, kind, api_server.pod(name))
        bench.api.tell(api_server.PODS, "ADDED", api_server.pod("d"))
        await until(lambda: followed.listing.get(("ml", "d")) is not None)
        assert len(bench.changes("pods")) == 1, "three are there"
        bench.api.tell(api_server.PODS, "ADDED", api_server.pod("e"))
        await until(lambda: len(bench.changes("pods")) > 1)
        following.cancel()
    lost = bench.changes("pods")[1]
    assert (lost.works, lost.reason) == (False, "more than 3 pods")


async def test_a_first_list_that_takes_long_is_not_waited_for(bench: Bench) -> None:
    bench.api.held = {api_server.PODS}
    async with bench.following() as following:
        with pytest.raises(errors.SourceError, match="nothing was listed yet"):
            await fetch_evidence(following)


async def test_a_server_that_hangs_and_a_token_that_is_not_there_are_reasons(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.api.held = {api_server.PODS}
    async with asking(silence_seconds=0.2) as hasty:
        with pytest.raises(errors.SourceTimeoutError, match="cannot list pods: no answer in time"):
            await hasty.page(PODS)
    path = bench.api.kubeconfig(tmp_path, tokenFile=str(tmp_path / "token"))
    monkeypatch.setenv("KUBECONFIG", path)
    async with asking() as lost:
        with pytest.raises(errors.SourceRefusedError, match=r"cannot list pods: Token file .* not"):
            await lost.page(PODS)


async def test_evidence_is_as_old_as_the_last_line(bench: Bench) -> None:
    async with bench.watching() as following:
        assert (await fetch_evidence(following)).scrapes == {API_SERVER: AT}, (
            "nothing later than asked"
        )
        bench.clock.seconds += 20
        assert (await fetch_evidence(following)).scrapes == {API_SERVER: AT + 5 - 20}
        bench.api.tell(api_server.PODS, "ADDED", _bert("b"))
        evidence = await until_evidence(following, lambda evidence: len(evidence.pods) == 2)
        assert evidence.scrapes == {API_SERVER: AT}
        bench.clock.seconds += 10
        bench.api.end(api_server.PODS)
        evidence = await until_evidence(
            following, lambda evidence: evidence.scrapes == {API_SERVER: AT}
        )


async def test_a_silent_watch_is_not_trusted_for_long(bench: Bench) -> None:
    async with bench.watching() as following:
        bench.clock.seconds += reflector.BELIEVED_SECONDS
        await fetch_evidence(following)
        bench.clock.seconds += 1
        with pytest.raises(errors.SourceError, match="no word about pods for 31 s"):
            await fetch_evidence(following)


def test_what_was_deleted_is_known_as_it_was_at_the_end_and_bounded_in_number() -> None:
    known, limit = Listing[int](Clock()), reflector.GONE_LIMIT
    known.replace({("ml", f"pod-{number}"): number for number in range(limit + 5)})
    known.replace({("ml", "pod-0"): 0})
    assert [number for _, number in known.gone()] == list(range(5, limit + 5))
    known.drop(("ml", "pod-0"), 30)
    assert (known.of("ml"), known.last(("ml", "pod-0"))) == ({}, 30)


def test_a_watch_has_news_twice_before_it_is_not_trusted() -> None:
    assert 2 * client.WATCH_SECONDS <= reflector.BELIEVED_SECONDS
    assert client.WATCH_SECONDS < SILENCE_SECONDS < reflector.BELIEVED_SECONDS


async def test_a_scaled_object_that_is_new_is_waited_for(bench: Bench) -> None:
    new = api_server.scaled_object("new", name="bert")
    async with bench.watching() as following:
        asked = asyncio.create_task(following.target(ScaledObject("ml", "new"), PATIENCE_SECONDS))
        bench.api.tell(
            api_server.SCALED_OBJECTS, "MODIFIED", bench.api.objects[api_server.SCALED_OBJECTS][0]
        )
        bench.api.tell(api_server.SCALED_OBJECTS, "ADDED", new)
        assert await asked == Workload(Kind.DEPLOYMENT, "ml", "bert")


async def test_a_scaled_object_that_is_not_there_has_no_target(bench: Bench) -> None:
    async with bench.watching() as following:
        with pytest.raises(errors.SourceError, match="the Kubernetes API lists no such ScaledObj"):
            await following.target(ScaledObject("ml", "other"), 0.1)


async def test_a_target_stays_known_while_scaled_objects_cannot_be_read(bench: Bench) -> None:
    workload = Workload(Kind.STATEFUL_SET, "ml", "bert")
    async with bench.watching() as following:
        assert await following.target(BERT, PATIENCE_SECONDS) == workload
        bench.api.trouble[api_server.SCALED_OBJECTS, "list"] = FORBIDDEN
        bench.api.end(api_server.SCALED_OBJECTS, "cut")
        await until(lambda: len(bench.changes("scaledobjects.keda.sh")) == 2)
        assert await following.target(BERT, PATIENCE_SECONDS) == workload
        with pytest.raises(errors.SourceError, match=r"cannot watch scaledobjects\.keda\.sh: "):
            await following.target(ScaledObject("ml", "other"), PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (FORBIDDEN, "HTTP 403, x is forbidden: User y"),
        (JSONResponse([]), f"{SHAPE}Expected `object`, got `array`"),
    ],
)
async def test_a_selector_that_cannot_be_read_is_a_reason(
    bench: Bench, answer: Response, message: str
) -> None:
    found = {"group": "example.com", "version": "v1", "kind": "Model", "resource": "models"}
    scaled = api_server.scaled_object(
        BERT.name, apiVersion="example.com/v1", kind="Model", name="b"
    )
    scaled["status"] = {"scaleTargetGVKR": found}
    bench.api.objects[api_server.SCALED_OBJECTS] = [scaled]
    bench.api.selectors["/apis/example.com/v1/namespaces/ml/models/b/scale"] = answer
    async with bench.watching() as following:
        with pytest.raises(errors.SourceRefusedError) as refused:
            await following.target(BERT, PATIENCE_SECONDS)
    assert str(refused.value).startswith(
        "it is not known which pods ml/bert-scaler scales: cannot get models.example.com/scale "
        f"(models.example.com/b in ml): {message}"
    )
    assert str(refused.value).endswith("; workload or podPattern would say it")


@pytest.mark.parametrize(
    ("text", "message"), [(None, "Configuration file "), ("{}", "the kubeconfig has no 'clusters'")]
)
def test_no_cluster_is_a_wrong_setting(
    text: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(errors.SettingsError) as wrong:
        kubernetes.create(facts.ignore)
    assert str(wrong.value).startswith(f"KEDA_GPU_SCALER_KUBERNETES: no cluster to ask: {message}")
