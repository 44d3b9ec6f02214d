"""Asks a Prometheus what all workloads with GPUs did: four hours a query, and slowly."""

import asyncio
import hashlib
import math
from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import kube_state_texts, profiles
from keda_gpu_scaler.query.promql_texts import alternatives, range_text
from keda_gpu_scaler.record.causes import Look
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient, parse_matrix, parse_vector
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.spec.workload import NO_OWNER, Owner
from keda_gpu_scaler.workbench.cache import Cache
from keda_gpu_scaler.workbench.survey.usage import (
    LIST_SECONDS,
    STEP_SECONDS,
    Links,
    UsagePart,
    stretches,
)

PART_SECONDS = 4 * 3600
"""Of the past that one query is about: 240 points of each GPU, as in an hour of `backtest`."""


class SurveyReader:
    """Reads what all workloads did, newest first."""

    def __init__(self, client: PrometheusClient, cache: Cache[UsagePart]) -> None:
        self._client, self._cache = client, cache
        self._source = PrometheusSource(client)
        self._key = hashlib.sha256(repr(client.settings).encode()).hexdigest()[:16]

    async def read(self, seconds: float, tell: Callable[[float], None]) -> list[UsagePart]:
        """Return the parts of the last `seconds` at least, oldest first.

        `tell` gets the share that is done.

        Raises:
            errors.SourceError: the source gave no usable answer.
        """
        await self._source.synchronize()
        newest = self._source.instant() // LIST_SECONDS * LIST_SECONDS
        end = newest // PART_SECONDS * PART_SECONDS
        ends = [end - number * PART_SECONDS for number in range(math.ceil(seconds / PART_SECONDS))]
        ends = list(dict.fromkeys([newest, *ends]))
        listed: dict[float, _Listed] = {}
        parts: dict[float, UsagePart] = {}
        for number, at in enumerate(ends, 1):
            part = self._cache.get(self._key, begin_of(at))
            if part is None:
                day = day_of(at)
                if day not in listed:
                    listed[day] = await self._list(at)
                part = await self._fetch(at, listed[day])
            parts[at] = part
            tell(number / len(ends))
        return [parts[at] for at in sorted(parts)]

    async def look(self) -> tuple[Look, bool]:
        """Return what there is of exporters, and whether kube-state-metrics lists GPUs of pods."""
        await self._source.synchronize()
        try:
            look = await self._source.look()
        except errors.SourceError as error:
            look = Look(refused=str(error))
        text = f"count({kube_state_texts.GPU_REQUESTS})"
        return look, await self._client.number(
            "kube-state", text, self._source.instant()
        ) is not None

    async def _list(self, at: float) -> "_Listed":
        """Return what there was within the 24 hours before `at`."""
        metrics = profiles.metric_names(profiles.AUTO, Signal.UTILIZATION)
        by = ", ".join(profiles.NAMESPACE_LABELS)
        rows: list[Row] = []
        for shown in (f"{{__name__=~{alternatives(metrics)}}}", kube_state_texts.GPU_REQUESTS):
            text = f"group by ({by}) (last_over_time({shown}[1d]))"
            rows += await self._client.ask("namespaces", text, at, parse_vector)
        named = {row.labels.get(label, "") for row in rows for label in profiles.NAMESPACE_LABELS}
        namespaces = frozenset(named - {""})
        if not namespaces:
            return _Listed(namespaces, Links({}, {}))
        pods = {
            _key(row, "pod"): _owner(row)
            for row in await self._owners(namespaces, at, kube_state_texts.PODS, "pod")
        }
        above = {}
        for label, metric in kube_state_texts.LINKS.items():
            kind = kube_state_texts.KINDS[label]
            for row in await self._owners(namespaces, at, metric, label):
                namespace, name = _key(row, label)
                above[namespace, Owner(kind, name)] = _owner(row)
        return _Listed(namespaces, Links(pods, above))

    async def _owners(
        self, namespaces: frozenset[str], at: float, metric: str, label: str
    ) -> list[Row]:
        write = partial(_owners_text, metric, label)
        return await self._client.rows("owners", namespaces, write, at, parse_vector)

    async def _fetch(self, at: float, listed: "_Listed") -> UsagePart:
        begin, span_seconds = begin_of(at), at - begin_of(at)
        if not listed.namespaces:
            return UsagePart(begin, {})
        snapshot_query = SnapshotQuery(
            Signal.UTILIZATION, profiles.AUTO, listed.namespaces, span_seconds, 0.0
        )
        observation = await self._source.past(snapshot_query, at, STEP_SECONDS)
        write = partial(_running_text, span_seconds)
        rows = await self._client.rows("pods", listed.namespaces, write, at, parse_matrix)
        there = {_key(row, "pod"): frozenset(row.times) for row in rows}
        found = await asyncio.to_thread(stretches, observation, there, listed.links)
        part = UsagePart(begin, found)
        if span_seconds == PART_SECONDS:
            self._cache.add(self._key, part)
        return part


class _Listed(NamedTuple):
    """What there was on one day."""

    namespaces: frozenset[str]
    """Those with GPUs."""
    links: Links


def begin_of(at: float) -> float:
    """Return the begin of the part that an instant belongs to, which ends with its last instant."""
    return (at - STEP_SECONDS) // PART_SECONDS * PART_SECONDS


def day_of(at: float) -> float:
    """Return the day of that part: what is listed at its last part reaches back to its begin."""
    return begin_of(at) // durations.DAY_SECONDS


def _key(row: Row, label: str) -> tuple[str, str]:
    return row.labels.get("namespace", ""), row.labels.get(label, "")


def _owner(row: Row) -> Owner:
    kind, name = row.labels.get("owner_kind", ""), row.labels.get("owner_name", "")
    return NO_OWNER if kind in {"", "<none>"} else Owner(kind, name)


def _owners_text(metric: str, label: str, namespaces: Collection[str]) -> str:
    here = f'{metric}{{namespace=~{alternatives(namespaces)},owner_is_controller!="false"}}'
    return f"group by (namespace, {label}, owner_kind, owner_name) (last_over_time({here}[1d]))"


def _running_text(span_seconds: float, namespaces: Collection[str]) -> str:
    """Return the query for the pods that ask for a GPU and run."""
    here = f"namespace=~{alternatives(namespaces)}"
    asking = kube_state_texts.GPU_REQUESTS.replace("{", f"{{{here},", 1)
    running = f'kube_pod_status_phase{{{here},phase="Running"}} == 1'
    text = f"group by (namespace, pod) ({asking}) and on (namespace, pod) ({running})"
    # One list more: a pod at the very begin is between two of them.
    return f"({text}){range_text(span_seconds + LIST_SECONDS, LIST_SECONDS)}"
