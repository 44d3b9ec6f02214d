"""The scrape jobs that queries name. Their names are others' texts: few are kept, and short ones.

A tenant can give each of its rows a job of its own, and a job stands in every query of the source.
"""

from collections.abc import Mapping

from keda_gpu_scaler.query.promql_texts import alternatives
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import REMEMBERED_SECONDS
from keda_gpu_scaler.transport.http_client import printable

MOST_JOBS = 50
LONGEST_CHARACTERS = 100
FORGOTTEN_SECONDS = REMEMBERED_SECONDS
"""As long as pods are waited for."""


class ScrapeJobs:
    """The jobs that rows have named lately; those that show most namespaces come first."""

    def __init__(self, client: PrometheusClient, most_bytes: int) -> None:
        """Keep jobs that take at most so many bytes in a query, each time that it names them."""
        self._client, self._most_bytes = client, most_bytes
        self._known: dict[str, tuple[float, float]] = {}
        """The most namespaces that each job has shown, and when a row last named it."""
        self.names = frozenset[str]()

    def note(self, namespaces: Mapping[str, float]) -> None:
        """Note jobs with the number of namespaces that each shows; forget old ones."""
        now = self._client.clock()
        lately = {
            job: (most, named_at)
            for job, (most, named_at) in self._known.items()
            if now - named_at < FORGOTTEN_SECONDS
        }
        for job, count in namespaces.items():
            lately[job] = max(count, lately.get(job, (count, now))[0]), now
        self._known, left_bytes = {}, self._most_bytes
        for job in sorted(lately, key=lambda job: (-lately[job][0], job not in self.names, job)):
            size = len(alternatives([job]).encode())
            fits = len(job) <= LONGEST_CHARACTERS and size <= left_bytes
            if fits and len(self._known) < MOST_JOBS:
                self._known[job] = lately[job]
                left_bytes -= size
        self.names = frozenset(self._known)
        if left_out := lately.keys() - self.names:
            first = printable(min(left_out), LONGEST_CHARACTERS)
            self._client.observe(facts.JobsLeftOut(self._client.name, len(left_out), first))
