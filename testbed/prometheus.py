"""A real Prometheus, and its relatives.

It is started on a free port, fed with history, and stopped by its handle:

    async with PrometheusServer(tmp_path) as prometheus:
        await prometheus.write([series.Series("up", {"job": "dcgm"}, [(now - 60, 1), (now, 1)])])
        await prometheus.query("up", at=now)

Nothing here knows of the scaler.
"""

import itertools
import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from testbed import remote_write, series
from testbed.processes import until
from testbed.servers import READY_WITHIN_SECONDS, Server

_REQUESTS = "prometheus_http_requests_total"
_DATA = "data"
_QUERY = 'handler="/api/v1/query"'
SERIES_PER_REQUEST = 100
"""Prometheus bounds the body of a request."""
_INTERVALS = ("scrape_interval", "scrape_timeout", "evaluation_interval")


@dataclass(slots=True)
class PrometheusServer(Server):
    """One Prometheus process with its data in a directory of the test."""

    PROGRAM: ClassVar[str] = "prometheus"
    READY: ClassVar[str] = "/-/ready"
    LATE_SECONDS: ClassVar[float] = 0
    """How far behind the server's answers about now are."""
    KEEPS_NAN: ClassVar[bool] = True
    TAKES_LONG_QUERIES: ClassVar[bool] = True

    scrape_configs: Sequence[Mapping[str, Any]] = ()
    """The `scrape_configs` section, as Prometheus documents it; scraped every second."""
    sections: Mapping[str, Any] = field(default_factory=dict)
    """Further sections of the configuration, such as `alerting`; rules are judged every second."""

    async def restart_empty(self) -> None:
        """Stop it and start it again with nothing of what it had stored."""
        await self.stop()
        shutil.rmtree(self.directory / _DATA)
        await self.start()

    async def reload(self, scrape_configs: Sequence[Mapping[str, Any]]) -> None:
        self.scrape_configs = scrape_configs
        self._configure()
        (await self._client.post(f"{self.url}/-/reload")).raise_for_status()

    async def query(self, promql: str, at: float | None = None) -> list[dict[str, Any]]:
        """Return the result of an instant query; the query has no side effect on the test."""
        form = {"query": promql, "time": str(time.time() if at is None else at)}
        response = await self._client.post(f"{self.url}/api/v1/query", data=form)
        response.raise_for_status()
        result: list[dict[str, Any]] = response.json()["data"]["result"]
        return result

    async def requests(self) -> int:
        """Return how many queries its API has been asked, by its own count."""
        page = (await self._client.get(f"{self.url}/metrics")).text
        lines = (line for line in page.splitlines() if line.startswith(_REQUESTS))
        counts = [float(line.rpartition(" ")[2]) for line in lines if _QUERY in line]
        return int(sum(counts))

    async def wait_for(self, promql: str, within_seconds: float = 20.0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []

        async def answers() -> bool:
            found[:] = await self.query(promql)
            return bool(found)

        await until(answers, within_seconds, f"{promql} answers something")
        return found

    def now(self) -> float:
        """Return the time that answers about now are really about."""
        return time.time() - self.LATE_SECONDS

    async def write(self, history: Iterable[series.Series]) -> None:
        """Store samples at their own times, up to a day in the past and in any order."""
        left = iter(history)
        while batch := list(itertools.islice(left, SERIES_PER_REQUEST)):
            response = await self._client.post(
                f"{self.url}/api/v1/write",
                content=remote_write.request(batch),
                headers=remote_write.HEADERS,
                timeout=READY_WITHIN_SECONDS,
            )
            assert response.is_success, response.text

    def _configure(self) -> None:
        # JSON is YAML, and takes no library to write.
        (self.directory / "prometheus.yml").write_text(json.dumps(self._configuration()))

    def _configuration(self) -> dict[str, Any]:
        return {
            "global": dict.fromkeys(_INTERVALS, "1s"),
            "storage": {"tsdb": {"out_of_order_time_window": "1d"}},
            "scrape_configs": list(self.scrape_configs),
            **self.sections,
        }

    def _flags(self) -> list[str]:
        return [
            f"--config.file={self.directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.directory / _DATA}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--web.enable-lifecycle",
            "--web.enable-remote-write-receiver",
            "--scrape.discovery-reload-interval=100ms",
            "--log.level=warn",
        ]


class Prometheus2(PrometheusServer):
    """A Prometheus 2, as Debian packages it: without what came with Prometheus 3."""

    __slots__ = ()
    PROGRAM = "prometheus-2"

    def _flags(self) -> list[str]:
        return [flag for flag in super()._flags() if "discovery-reload" not in flag]


class VictoriaMetrics(PrometheusServer):
    """A single VictoriaMetrics, with its defaults wherever they show in an answer."""

    __slots__ = ()
    PROGRAM = "victoria-metrics"
    READY = "/health"
    LATE_SECONDS = 30
    KEEPS_NAN = False
    TAKES_LONG_QUERIES = False

    async def write(self, history: Iterable[series.Series]) -> None:
        """Store samples, and have them found at once: by itself it takes about a second."""
        await PrometheusServer.write(self, history)
        (await self._client.get(f"{self.url}/internal/force_flush")).raise_for_status()

    def _configuration(self) -> dict[str, Any]:
        scraping = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        return {"global": scraping, "scrape_configs": list(self.scrape_configs)}

    def _flags(self) -> list[str]:
        return [
            f"-promscrape.config={self.directory / 'prometheus.yml'}",
            f"-storageDataPath={self.directory / 'data'}",
            f"-httpListenAddr=127.0.0.1:{self.port}",
            "-loggerLevel=WARN",
            "-retentionPeriod=100y",
            # Tests write about minutes ago, of which it would remember that there was nothing.
            "-search.disableCache",
        ]


KINDS: Mapping[str, type[PrometheusServer]] = {
    kind.PROGRAM: kind for kind in (PrometheusServer, Prometheus2, VictoriaMetrics)
}
