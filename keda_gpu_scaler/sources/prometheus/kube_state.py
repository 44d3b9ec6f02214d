"""kube-state-metrics in a Prometheus: found by its metrics, and queried at each step."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from functools import partial

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kube_state_metrics import read_evidence
from keda_gpu_scaler.query import kube_state_texts as texts
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient, ScrapeJobs, parse_vector

JOBS_BYTES = 1_500
"""Six times in the query, of which the rest takes up to 6 KB of VictoriaMetrics' 16 KiB."""
FOUND_SECONDS = 300.0
"""A new job that shows kube-state-metrics is rare."""


class KubeStateMetrics:
    """The kube-state-metrics that one server scrapes, if any."""

    name = "kube-state-metrics"

    def __init__(
        self, client: PrometheusClient, without_gpus: frozenset[str] = frozenset()
    ) -> None:
        """Query one server; `without_gpus` is what pods may ask for and is no GPU."""
        self._client, self._without_gpus = client, without_gpus
        self._jobs = ScrapeJobs(client, JOBS_BYTES)
        self._lists_pods = False
        self._kinds = frozenset[str]()
        """The kinds of owners that it lists."""
        self._looked_at = float("-inf")
        self._covered: frozenset[str] = frozenset()
        self._covered_at = float("-inf")

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence | None:
        """Return the evidence about these namespaces; None: there never was one to query."""
        del now  # the server knows the age of its samples
        # Until one is found, look each time: a server that has just started can show the exporters
        # before kube-state-metrics. Until then a pod on a node with its exporter down is not known.
        if not self._jobs.names or self._client.clock() - self._looked_at >= FOUND_SECONDS:
            self._looked_at = self._client.clock()
            try:
                rows = await self._client.ask("jobs", texts.JOBS, at, parse_vector)
            except errors.SourceError:  # it is about all namespaces, and may be too large
                if not self._jobs.names:
                    raise
                rows = []
            else:
                ordered = sorted(rows, key=lambda row: row.points[0][1])
                self._jobs.note({row.labels.get("job", ""): row.points[0][1] for row in ordered})
            metrics = {row.labels.get("__name__", "") for row in rows}
            self._lists_pods |= texts.PODS in metrics
            self._kinds |= {
                texts.LISTED_KINDS[name] for name in metrics & texts.LISTED_KINDS.keys()
            }
        if not self._jobs.names:
            return None
        new = names = frozenset(namespaces)
        if 0 <= at - self._covered_at <= texts.PAST_SECONDS:
            new -= self._covered  # the past of the others is queried
        write = partial(texts.kube_state_text, self._jobs.names, new, self._without_gpus)
        with self._client.turn():
            rows = await self._client.rows("evidence", names, write, at, parse_vector)
            evidence = await asyncio.to_thread(read_evidence, rows, self._kinds)
            del rows
        # A known job that is down is still expected to answer.
        self._jobs.note(dict.fromkeys((target.job for target in evidence.down), 0))
        self._covered, self._covered_at = evidence.covered, at
        if self._lists_pods and self._client.shows_targets:
            return evidence
        # Of a kube-state-metrics that does not collect pods, or whose health is not shown, no list
        # of pods is known to be complete.
        return replace(evidence, stable_since={})
