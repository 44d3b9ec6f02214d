"""A cloud's own share of memory, where a Prometheus has it: by the query on that cloud's page."""

from tests.repository.test_docs import ROOT
from tests.repository.test_docs_snippets import pieces
from tests.stories.promises.stack import Poll, running
from tests.stories.promises.test_own_promql import BERT, load
from tests.support.prometheus import PrometheusServer
from tests.support.series import Series

PAGE = ROOT / "docs" / "migrate" / "adapters.md"
RATIO = "DCGM_CUSTOM_PROCESS_GPU_MEM_USED_RATIO"


def ratio(pod: str, percent: float, namespace: str = "ml") -> Series:
    """Return the series with the labels that the profile of this exporter expects."""
    named = {"NamespaceName": namespace, "PodName": pod, "UUID": f"GPU-{pod}"}
    return load(RATIO, percent, named | {"job": "ack", "instance": "10.0.0.1:9400"})


async def test_the_query_on_the_page_reads_the_ratio_of_the_workloads_pods_alone(
    prometheus: PrometheusServer,
) -> None:
    (metadata,) = [
        one["metadata"]
        for piece in pieces(PAGE)
        for one in piece.document.get("triggers", ())
        if RATIO in one["metadata"].get("query", "")
    ]
    keys = {key: text for key, text in metadata.items() if key not in {"scalerAddress", "workload"}}
    others = [ratio("bert-canary-7b6667bd9-bbbbb", 1), ratio(BERT[0], 90, namespace="other")]
    await prometheus.write([ratio(BERT[0], 60), ratio(BERT[1], 40), *others])
    async with running(prometheus.url, step="15s") as stack:
        # The name that the tests' client asks for.
        found = await stack.poll(**keys, metricName="gpu-utilization")
    assert found == Poll(75, 100, active=True)
