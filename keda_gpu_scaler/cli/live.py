"""Asks the source, the cluster and the gateway what `check --live` judges.

Each trigger is decided as `explain --file` does, by the scaler's own evaluator. Where that shows no
GPU of the workload, the source is asked what it has instead. Nothing is changed anywhere.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.check import documents, keys, live
from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Terms, Trigger, manifests
from keda_gpu_scaler.cli import local
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql import quoted
from keda_gpu_scaler.query.promql_texts import alternatives, marked
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.settings import PrometheusSettings, Settings
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources import connection
from keda_gpu_scaler.sources.prometheus import api
from keda_gpu_scaler.sources.prometheus.endpoint import Endpoint, RowQueryClient
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import client

_TARGET = ("job", "instance")
TRIGGERS_LIMIT = 200
"""Of one run: each costs a handful of queries."""


class Wanted(NamedTuple):
    """What to ask."""

    settings: Settings
    gateway: str | None
    """A URL of the gateway before the workload; None: it is not asked."""
    timeout_seconds: float


def look(texts: Mapping[str, str], terms: Terms, wanted: Wanted) -> list[Finding]:
    """Return what is wrong with the triggers in some texts by what the source and cluster show.

    Args:
        texts: YAML by the names under which findings show it.
        terms: what is known beside it.
        wanted: what to ask.

    Raises:
        errors.SettingsError: there is no cluster to query.
        ValueError: there are more triggers than are asked about.
    """
    found: list[Finding] = []
    read: list[tuple[Trigger, TriggerSpec]] = []
    for one in _triggers(texts, terms):
        try:
            scaled_object = ScaledObject(one.of.namespace, one.of.name)
            spec = trigger.parse(scaled_object, one.metadata, wanted.settings.access)
        except errors.SpecError as wrong:
            # What is wrong by itself is found without looking.
            here = [each for each in wrong.mistakes if each not in one.mistakes]
            found += keys.refused(one, here)
        else:
            read.append((one, spec))
    if len(read) > TRIGGERS_LIMIT:
        raise ValueError(f"{len(read)} triggers, and --live asks about {TRIGGERS_LIMIT} at most")
    return found + asyncio.run(_found(read, wanted))


def _triggers(texts: Mapping[str, str], terms: Terms) -> Iterator[Trigger]:
    for file, text in texts.items():
        for document in documents.read(text).documents:
            for one in manifests(file, document, terms):
                if one.kind == "ScaledObject":
                    # A value of the environment is not known here.
                    yield from (each for each in one.ours if each.mistakes or each.spec is not None)


async def _found(triggers: list[tuple[Trigger, TriggerSpec]], wanted: Wanted) -> list[Finding]:
    given = [
        local.Given(ScaledObject(one.of.namespace, one.of.name), spec) for one, spec in triggers
    ]
    records = await local.records(given, wanted.settings, slow_seconds=wanted.timeout_seconds)
    status = await _status(wanted)
    found: list[Finding] = []
    for (one, spec), record in zip(triggers, records, strict=True):
        seen = await _of(spec, record, wanted.settings, status)
        found += live.check(one, spec, seen)
    return found


async def _status(wanted: Wanted) -> int | None:
    """Return the status with which the gateway answers; None: it gives none."""
    if wanted.gateway is None:
        return None
    requests = client.of_one_server(wanted.gateway, None, None, wanted.timeout_seconds)
    try:
        return (await requests.get(wanted.gateway)).status
    except errors.SourceError:
        return None
    finally:
        await requests.close()


async def _of(
    spec: TriggerSpec, record: Record, settings: Settings, gateway_status: int | None
) -> live.Seen:
    if record.source.snapshot_at is None:
        return live.Seen(trouble=record.source.trouble or "no answer")
    seen = live.Seen(
        is_empty=record.state == State.EMPTY,
        has_gpus=any(pod.gpus for pod in record.pods),
        lag_seconds=record.source.lag_seconds,
        has_readiness=record.source.evidence not in (None, EvidenceSource.EXPORTERS),
        gateway_status=gateway_status,
    )
    source = settings.sources[spec.source]
    if not isinstance(source, PrometheusSettings):
        return seen
    async with _asking(source, spec) as asking:
        return await asking.completed(seen)


def _target(row: Row) -> tuple[str | None, ...]:
    """Return the scrape target of a row; Prometheus attaches an exporter's own pod to idle GPUs."""
    return tuple(row.labels.get(label) for label in _TARGET)


@asynccontextmanager
async def _asking(settings: PrometheusSettings, spec: TriggerSpec) -> AsyncIterator["_Asking"]:
    endpoint = Endpoint(settings, connection.create_client(settings))
    if settings.is_per_namespace:
        endpoint = endpoint.within(spec.pods.namespace)
    try:
        yield _Asking(RowQueryClient(spec.source, endpoint, facts.ignore, time.monotonic), spec)
    finally:
        await endpoint.client.close()


class _Asking(NamedTuple):
    """Asks one source about one trigger."""

    queries: RowQueryClient
    spec: TriggerSpec

    async def completed(self, seen: live.Seen) -> live.Seen:
        """Return what was seen, with what the source says to questions of our own."""
        more: dict[str, object] = {"demand_trouble": await self._demand_trouble()}
        if self.spec.query is None:
            more |= await self._series(has_gpus=seen.has_gpus)
        return live.Seen(**{name: getattr(seen, name) for name in seen.__slots__} | more)

    async def _demand_trouble(self) -> str | None:
        if self.spec.demand is None:
            return None
        try:
            value = await self.queries.asked("demand", self.spec.demand.text, None, api.number)
        except errors.SourceError as error:
            return str(error)
        return "its query gives nothing" if value is None else None

    async def _series(self, *, has_gpus: bool) -> dict[str, object]:
        spec = self.spec
        metrics = {name for _, name in profiles.metric_names(spec.profile, spec.signal)}
        shown = f"{{__name__=~{alternatives(metrics)}}}"
        found: dict[str, object] = {"metrics": metrics}
        # A server may refuse such broad queries and answer the scaler's own.
        try:
            if not has_gpus:
                found |= await self._others(shown, metrics)
            found["interval_seconds"] = await self._interval(shown)
        except errors.SourceError as error:
            found["refusal"] = str(error)
        return found

    async def _others(self, shown: str, metrics: Collection[str]) -> dict[str, object]:
        """Return what exporters show, where it is nothing of the workload."""
        labels = ", ".join((*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS, *_TARGET))
        rows = await self._rows(f"group by ({labels}) ({shown})")
        exporters = {
            (_target(row), profiles.pod_of(row.labels))
            for row in await self._rows(f"group by (namespace, pod, {', '.join(_TARGET)}) (up)")
        }
        named = {(_target(row), profiles.pod_of(row.labels)) for row in rows} - exporters
        found: dict[str, object] = {
            "has_series": bool(rows),
            "pods": {pod for _, pod in named if pod is not None},
        }
        if not rows:
            # Each by itself: two metrics of one GPU have the same labels, and times have no name.
            times = " or ".join(
                marked(f"max(timestamp({{__name__={quoted(one)}}}))", "metric", one)
                for one in sorted(metrics)
            )
            others = f"{{__name__=~{alternatives(profiles.KNOWN_METRICS)}}}"
            found["newest_age_seconds"] = await self._number(
                f"time() - max(max_over_time(({times})[1h:1m]))"
            )
            found["has_other_series"] = await self._number(f"count({others})") is not None
        return found

    async def _interval(self, shown: str) -> float | None:
        """Return the time between two samples of one of the series."""
        rows = await self._rows(f"topk(1, {shown})")
        times: list[float] = []
        for row in rows:
            labels = ",".join(f"{name}={quoted(value)}" for name, value in row.labels.items())
            selected = f"{{{labels}}}[10m]"
            for series in await self.queries.asked("look", selected, None, api.matrix):
                times = [at for at, _ in series.points]
        gaps = [later - before for before, later in itertools.pairwise(times)]
        return statistics.median(gaps) if gaps else None

    async def _rows(self, text: str) -> list[Row]:
        return await self.queries.asked("look", text, None, api.vector)

    async def _number(self, text: str) -> float | None:
        return await self.queries.asked("look", text, None, api.number)
