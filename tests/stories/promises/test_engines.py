"""Language models by the requests at their engines, with the query of the page about them."""

from tests.repository.test_docs import ROOT
from tests.repository.test_docs_snippets import pieces
from tests.stories.promises.stack import Poll, Stack, running
from tests.stories.promises.test_own_promql import BERT, load
from tests.support.prometheus import PrometheusServer
from tests.support.series import Series


def metadata() -> dict[str, str]:
    """Return the page's trigger with a query, for another workload."""
    parts = pieces(ROOT / "docs" / "llm.md")
    found = [part.document["triggers"] for part in parts if "triggers" in part.document]
    ((one,),) = [each for each in found if "query" in each[0]["metadata"]]
    return {**one["metadata"], "workload": "bert", "metricName": "requests"}


def engine(pod: str, working: float, waiting: float, end: float = 0) -> list[Series]:
    """Return what an engine shows of its requests."""
    labels = {"namespace": "ml", "pod": pod, "job": "vllm", "instance": f"{pod}:8000"}
    numbers = {"vllm:num_requests_running": working, "vllm:num_requests_waiting": waiting}
    return [
        load(name, number, labels | {"model_name": "llama", "engine": "0"}, end=end)
        for name, number in numbers.items()
    ]


async def told(stack: Stack) -> Poll:
    return await stack.poll(**metadata())


async def test_one_engine_s_queue_asks_for_all_the_replicas_that_it_needs(
    prometheus: PrometheusServer,
) -> None:
    await prometheus.write([*engine(BERT[0], 16, 40), *engine(BERT[1], 2, 0)])
    async with running(prometheus.url, step="15s") as stack:
        # 58 requests over 16 per replica: four, where utilization would say 200 / 70, so three.
        assert await told(stack) == Poll(16, 58, active=True)


async def test_an_engine_that_is_not_scraped_any_more_holds_the_replicas(
    prometheus: PrometheusServer,
) -> None:
    await prometheus.write([*engine(BERT[0], 9, 0), *engine(BERT[1], 30, 0, end=-240)])
    async with running(prometheus.url, step="15s") as stack:
        assert await told(stack) == Poll(16, None, active=True)
