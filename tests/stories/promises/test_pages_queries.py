"""The queries of the pages, on a Prometheus: the right pods, the right numbers, or a hold."""

from pathlib import Path

from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.repository.test_docs import ROOT
from tests.repository.test_docs_snippets import pieces
from tests.stories.promises.stack import Poll, running
from tests.stories.promises.test_own_promql import BERT, load

RATIO = "DCGM_CUSTOM_PROCESS_GPU_MEM_USED_RATIO"
LLM, ADAPTERS = (ROOT / "docs" / name for name in ("llm.md", "migrate/adapters.md"))


def metadata(page: Path, sign: str) -> dict[str, str]:
    """Return the page's trigger with a query in which the sign is, for deployment/bert."""
    (one,) = [
        trigger["metadata"]
        for piece in pieces(page)
        if "triggers" in piece.document
        for trigger in piece.document["triggers"]
        if sign in trigger["metadata"].get("query", "")
    ]
    return {**one, "workload": "bert", "metricName": "gpu-utilization"}


async def polled(prometheus: PrometheusServer, keys: dict[str, str]) -> Poll:
    async with running(prometheus.url, step="15s") as stack:
        return await stack.poll(**keys)


def ratio(pod: str, percent: float, namespace: str = "ml") -> Series:
    """Return a cloud's own share of memory, with the labels of its exporter."""
    named = {"NamespaceName": namespace, "PodName": pod, "UUID": f"GPU-{pod}"}
    return load(RATIO, percent, named | {"job": "ack", "instance": "10.0.0.1:9400"})


def engine(pod: str, working: float, waiting: float, end: float = 0) -> list[Series]:
    """Return what an engine shows of its requests."""
    labels = {"namespace": "ml", "pod": pod, "job": "vllm", "instance": f"{pod}:8000"}
    numbers = {"vllm:num_requests_running": working, "vllm:num_requests_waiting": waiting}
    return [
        load(name, number, labels | {"model_name": "llama", "engine": "0"}, end=end)
        for name, number in numbers.items()
    ]


async def test_a_cloud_s_ratio_is_read_of_the_workloads_pods_alone(
    prometheus: PrometheusServer,
) -> None:
    others = [ratio("bert-canary-7b6667bd9-bbbbb", 1), ratio(BERT[0], 90, namespace="other")]
    await prometheus.write([ratio(BERT[0], 60), ratio(BERT[1], 40), *others])
    assert await polled(prometheus, metadata(ADAPTERS, RATIO)) == Poll(75, 100, active=True)


async def test_one_engine_s_queue_asks_for_all_the_replicas_that_it_needs(
    prometheus: PrometheusServer,
) -> None:
    await prometheus.write([*engine(BERT[0], 16, 40), *engine(BERT[1], 2, 0)])
    # 58 requests over 16 per replica: four, where utilization would say 200 / 70, so three.
    assert await polled(prometheus, metadata(LLM, "vllm")) == Poll(16, 58, active=True)


async def test_an_engine_that_is_not_scraped_any_more_holds_the_replicas(
    prometheus: PrometheusServer,
) -> None:
    await prometheus.write([*engine(BERT[0], 9, 0), *engine(BERT[1], 30, 0, end=-240)])
    assert await polled(prometheus, metadata(LLM, "vllm")) == Poll(16, None, active=True)
