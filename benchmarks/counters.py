"""What a Prometheus counts about itself, read from its metrics page. Pure."""

from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

_REQUESTS = "prometheus_http_requests_total"
_HANDLER = "/api/v1/query"
_CPU_SECONDS = "process_cpu_seconds_total"


class Counters(NamedTuple):
    """Counts since the server started."""

    queries: int
    """Instant queries asked, with any outcome. Reading the page is not one."""
    cpu_seconds: float


def parse(page: str) -> Counters:
    """Return the counters on a metrics page; a query that was never asked counts 0."""
    samples = [one for family in text_string_to_metric_families(page) for one in family.samples]
    asked = [
        one.value
        for one in samples
        if one.name == _REQUESTS and one.labels.get("handler") == _HANDLER
    ]
    used = [one.value for one in samples if one.name == _CPU_SECONDS]
    return Counters(int(sum(asked)), sum(used))
