"""A real InfluxDB 1.x for tests, fed with points as Telegraf writes them.

    async with InfluxdbServer(tmp_path) as influxdb:
        await influxdb.write([series.Series("DCGM_FI_DEV_GPU_UTIL", {"pod": "a"}, [(now, 1)])])

Nothing here knows of the scaler.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from testbed import series, servers
from testbed.servers import Server

DATABASE = "telegraf"
IS_CHOSEN = "influxdb" in servers.chosen()

on_influxdb = pytest.mark.skipif(not IS_CHOSEN, reason="SERVERS leaves influxdb out")

_CONFIGURATION = """
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "{directory}/data/meta"
[data]
  dir = "{directory}/data/data"
  wal-dir = "{directory}/data/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
  auth-enabled = {auth}
  max-row-limit = {rows}
[continuous_queries]
  enabled = false
"""
_ADMINISTRATOR = {"u": "root", "p": "secret"}


@dataclass(slots=True)
class InfluxdbServer(Server):
    """One InfluxDB process with an empty database."""

    PROGRAM: ClassVar[str] = "influxd"
    READY: ClassVar[str] = "/ping"

    asks_who: bool = False
    """Every request must authenticate; the administrator exists."""
    max_rows: int = 0
    """Answers are cut after so many rows; 0: they are whole."""

    async def start(self) -> None:
        await Server.start(self)
        if self.asks_who:
            await self.run("CREATE USER root WITH PASSWORD 'secret' WITH ALL PRIVILEGES")
        await self.run(f'CREATE DATABASE "{DATABASE}"')

    async def run(self, statement: str) -> Any:
        """Carry out a statement as the administrator, and return its result."""
        response = await self._client.post(
            f"{self.url}/query",
            params=_ADMINISTRATOR,
            data={"q": statement, "db": DATABASE, "epoch": "ms"},
        )
        response.raise_for_status()
        (result,) = response.json()["results"]
        assert "error" not in result, result
        return result

    async def write(
        self, history: Iterable[series.Series], field: str = "gauge", policy: str = ""
    ) -> None:
        """Store samples at their own times, in a measurement of each series' name."""
        lines = [
            f"{_escaped(one.name)},{_tags(one)} {field}={value!r} {round(time * 1000)}"
            for one in history
            for time, value in one.samples
            if value is not series.STALE  # nothing marks an end here
        ]
        response = await self._client.post(
            f"{self.url}/write",
            params={"db": DATABASE, "rp": policy, "precision": "ms", **_ADMINISTRATOR},
            content="\n".join(lines).encode(),
        )
        assert response.is_success, response.text

    def _configure(self) -> None:
        text = _CONFIGURATION.format(
            directory=self.directory,
            port=self.port,
            auth=str(self.asks_who).lower(),
            rows=self.max_rows,
        )
        (self.directory / "influxdb.conf").write_text(text)

    def _flags(self) -> list[str]:
        return ["-config", str(self.directory / "influxdb.conf")]


def _tags(one: series.Series) -> str:
    return ",".join(f"{_escaped(tag)}={_escaped(text)}" for tag, text in one.labels.items() if text)


def _escaped(text: str) -> str:
    for char in ",= ":
        text = text.replace(char, f"\\{char}")
    return text
