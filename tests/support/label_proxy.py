"""A real prom-label-proxy before a Prometheus: it demands a namespace and answers for that alone.

async with LabelProxy(tmp_path, upstream=prometheus.url) as proxy:
    PrometheusSettings(url=proxy.url, namespace_parameter="namespace")
"""

from dataclasses import dataclass
from typing import ClassVar

from testbed.servers import Server

NAMED_BY_PARAMETER = ("-query-param", "namespace")
NAMED_BY_HEADER = ("-header-name", "X-Namespace")


@dataclass(slots=True, kw_only=True)
class LabelProxy(Server):
    """One proxy process, which adds `namespace="..."` to every selector of what passes it."""

    PROGRAM: ClassVar[str] = "prom-label-proxy"
    READY: ClassVar[str] = "/healthz"

    upstream: str
    flags: tuple[str, ...] = NAMED_BY_PARAMETER

    def _configure(self) -> None:
        """It has no file of settings."""

    def _flags(self) -> list[str]:
        address = f"127.0.0.1:{self.port}"
        given = ("-label", "namespace", "-upstream", self.upstream, *self.flags)
        return [*given, "-insecure-listen-address", address]
