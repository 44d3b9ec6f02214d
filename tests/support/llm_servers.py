"""Pages of LLM servers and routers, and their series as a Prometheus stores them.

The pages are in `data/llm_servers/`; the comment at the top of each says whose names and labels it
has, of which release.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from testbed.series import Series, stored

PAGES = Path(__file__).parents[1] / "data" / "llm_servers"
COLLECTOR = {"namespace": "monitoring", "pod": "collector-0", "instance": "10.0.9.9:8889"}
"""What shows the series of others, scraped without `honor_labels`."""
_INSTANCES = {"pods": "10.0.0.7:8000", "services": "llama.local:8000"}


@dataclass(frozen=True, slots=True)
class Scraped:
    """A page that shows a pod, as a scrape job stores it."""

    page: str
    namespace: str
    pod: str
    times: float = 1
    """What the values are multiplied by."""
    job: str = "pods"
    """Each has addresses of its own."""
    is_exported: bool = False
    """A collector shows them, so that the pod is in `exported_pod`."""

    def series(self, now: float) -> Iterator[Series]:
        """Yield its series, constant for a quarter of an hour until `now`."""
        text = (PAGES / f"{self.page}.prom").read_text()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                value = self.times * sample.value
                points = [(now + second, value) for second in range(-900, 1, 15)]
                yield Series(sample.name, stored(sample.labels, self._labels()), points)

    def _labels(self) -> dict[str, str]:
        labels = {"job": self.job, "container": "server"}
        if self.is_exported:
            named = {"exported_namespace": self.namespace, "exported_pod": self.pod}
            return labels | COLLECTOR | named
        instance = f"{self.pod}/{_INSTANCES[self.job]}"
        return labels | {"namespace": self.namespace, "pod": self.pod, "instance": instance}
