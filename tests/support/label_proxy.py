"""A real prom-label-proxy before a Prometheus: it demands a namespace and answers for that alone.

async with LabelProxy(prometheus.url) as proxy:
    PrometheusSettings(url=proxy.url, namespace_parameter="namespace")
"""

import asyncio
from dataclasses import dataclass, field
from typing import Self

import httpx

from tests.support import programs
from tests.support.processes import bounded, free_port, until

READY_WITHIN_SECONDS = 10.0
STOPPED_WITHIN_SECONDS = 10.0
LIFE_SECONDS = 600.0
"""As that of the Prometheus behind it."""
NAMED_BY_PARAMETER = ("-query-param", "namespace")
NAMED_BY_HEADER = ("-header-name", "X-Namespace")


@dataclass(slots=True)
class LabelProxy:
    """One proxy process, which adds `namespace="..."` to every selector of what passes it."""

    upstream: str
    flags: tuple[str, ...] = NAMED_BY_PARAMETER
    port: int = field(default_factory=free_port)
    _process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where it answers, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        """Start it and wait until it answers."""
        self._process = await asyncio.create_subprocess_exec(
            *bounded(LIFE_SECONDS),
            programs.path("prom-label-proxy"),
            *("-label", "namespace", "-upstream", self.upstream),
            *("-insecure-listen-address", f"127.0.0.1:{self.port}"),
            *self.flags,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await until(self._answers, READY_WITHIN_SECONDS, "prom-label-proxy answers")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await asyncio.wait_for(self._process.wait(), STOPPED_WITHIN_SECONDS)

    async def _answers(self) -> bool:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            try:
                return (await client.get(f"{self.url}/healthz")).is_success
            except httpx.TransportError:
                return False
