"""A Prometheus that answers each kind of query as a test says, without a socket."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.telemetry import facts

SETTINGS = PrometheusSettings(url="http://prometheus")


class ScriptedClient(PrometheusClient):
    """Its queries are in `queries`: the kind, the text and the time."""

    def __init__(
        self,
        answers: Mapping[str, object] | None = None,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Answer by the kind of a query; no rows to a kind that is not there.

        An answer is rows or another value, an error to raise, or what makes one of the time.
        """
        super().__init__("default", SETTINGS, observe, clock)
        self._longest_bytes = math.inf
        self.answers: dict[str, object] = dict(answers or {})
        self.queries: list[tuple[str, str, float | None]] = []

    async def ask(
        self,
        kind: str,
        text: str,
        at: float | None,
        parse: Callable[..., Any],
        limit_bytes: int | None = None,
    ) -> Any:
        """Answer at once."""
        del parse, limit_bytes
        self.queries.append((kind, text, at))
        answer = self.answers.get(kind, [])
        if callable(answer):
            answer = answer(at)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def texts(self, kind: str) -> list[str]:
        return [text for queried, text, _ in self.queries if queried == kind]


def rows(*labels: Mapping[str, str], value: float = 1.0) -> list[Row]:
    return [Row.of(dict(each), [(0.0, value)]) for each in labels]
