"""The demands that triggers ask for: one expression is queried once for all of them.

An expression is queried when a trigger asks for it, at most once per interval. The more expressions
a source has, the longer their interval: a few wake their workloads within seconds, a thousand do no
harm.

As with snapshots, a failure keeps the last answer: it is used until it is older than the trigger's
`maxAge`. For a source that is known to fail or to be slow, only a poll waits that would fail
otherwise. An empty result is an answer too and replaces the one before it.
"""

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Numbers, Source
from keda_gpu_scaler.evaluator.single_flight import SingleFlight
from keda_gpu_scaler.spec.spec import (
    Demand,
    Pace,
    ScaledObject,
    TriggerSpec,
    demand_name,
)
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import (
    BEGUN_SECONDS,
    FORGET_SECONDS,
    GAP_SECONDS,
    OVERDUE_SECONDS,
)

NOTHING = "its query gives nothing"


class _Key(NamedTuple):
    """What triggers must have in common to share a query."""

    source_key: str
    """The source as facts name it."""
    text: str


class DemandQuery:
    """One expression at one source, with its last answer."""

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        key: _Key,
        owner: str,
        numbers: Numbers,
        observe: facts.Observer,
        flight: SingleFlight,
        turns: asyncio.Semaphore,
    ) -> None:
        self._source_name, self._text = key
        self.owner = owner
        """The namespace of the ScaledObject that asked first."""
        self._numbers, self._observe, self._turns = numbers, observe, turns
        self.flight, self._clock = flight, flight.clock
        self._value: float | None = None
        self._answered_at = self._settled_at = float("-inf")
        self._gap_seconds = GAP_SECONDS
        self._trouble: str | None = f"source {self._source_name}: no answer yet"
        """Why the newest query gave no number; None: it did."""
        self._is_prompt = True
        """The last finished query was answered in time, so callers wait for the next one."""
        self._works = True

    def due_seconds(self, interval_seconds: float) -> float:
        """Return the time until it may be queried again, once per interval and at a time."""
        due_seconds = self.flight.launched_at - self._clock() + interval_seconds
        return interval_seconds if due_seconds <= 0 and self.flight.is_under_way else due_seconds

    async def refresh(
        self, interval_seconds: float, deadline: float, *, is_urgent: bool = False
    ) -> None:
        """Query it if that is due, and wait; if the last answer was no good one, only if urgent."""
        self._gap_seconds = max(GAP_SECONDS, 2 * interval_seconds)
        if self.due_seconds(interval_seconds) <= 0:
            name = f"{demand_name(self._text)} {self._source_name}"
            self.flight.launch(self._ask, name)
        if self._is_prompt or is_urgent:
            await self.flight.wait(deadline)

    def demand(self, max_age_seconds: float) -> Demand:
        """Return what is known now; an answer older than `max_age_seconds` does not count."""
        age_seconds = self._clock() - self._answered_at
        if self._value is not None and age_seconds <= max_age_seconds:
            return Demand(self._value, is_least=self._clock() < self._settled_at)
        return Demand(None, self._trouble or f"source {self._source_name}: no newer answer")

    async def _ask(self) -> None:
        try:
            async with self._turns:
                value = await self._numbers.number(self._text)
        except errors.SourceError as error:
            self._is_prompt = False
            self._trouble = f"source {self._source_name}: {error}"
        else:
            now = self._clock()
            if self._value is None or now - self._answered_at > self._gap_seconds:
                self._settled_at = now + BEGUN_SECONDS
            self._answered_at = now
            self._is_prompt = now <= self.flight.slow_at
            self._value = value
            self._trouble = NOTHING if value is None else None
        works = self._trouble is None
        if works != self._works:
            self._works = works
            name = demand_name(self._text)
            reason = self._trouble or "it gives a number again"
            self._observe(facts.QueryChanged(self._source_name, name, works, reason))


QUERIES_PER_SOURCE = 2000
"""With the default budget each is queried every 200 s; more would starve the existing ones."""
QUERIES_PER_NAMESPACE = 1000
"""One tenant does not take them all."""
AT_ONCE_OF_A_NAMESPACE = 10
"""One tenant's slow expressions do not take all turns of a source."""
TOO_MANY = "too many different demandQueries"


class Demands:
    """Queries the sources; an expression is added when a trigger first asks for it."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        observe: facts.Observer,
        clock: Callable[[], float],
        slow_seconds: float,
        pace: Pace,
    ) -> None:
        """Take the sources to query, by the name that triggers use.

        `slow_seconds` is how long callers wait for an answer.
        """
        self._sources, self._observe, self._clock = sources, observe, clock
        self._pace, self._slow_seconds = pace, slow_seconds
        self._demand_queries: dict[str, TTLCache[_Key, DemandQuery]] = {
            name: TTLCache(QUERIES_PER_SOURCE, FORGET_SECONDS, clock) for name in sources
        }
        """By the source, whose budget they share; one that is not asked for any more is dropped."""
        self._turns: dict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(AT_ONCE_OF_A_NAMESPACE)
        )

    async def ask(
        self,
        scaled_object: ScaledObject,
        spec: TriggerSpec,
        deadline: float,
        *,
        is_urgent: bool = False,
    ) -> Demand:
        """Return the demand of a trigger that has one, as new as can be had before `deadline`.

        Only if it is urgent, wait also for a source that is known to fail or to be slow.
        """
        try:
            demand_query = self._find_or_add(scaled_object.namespace, spec)
        except errors.SourceRefusedError as error:
            known = Demand(None, f"source {spec.source}: {error}")
        else:
            interval_seconds = self._interval_seconds(spec.source)
            await demand_query.refresh(interval_seconds, deadline, is_urgent=is_urgent)
            known = self._demand(demand_query, spec)
        self._observe(facts.DemandKnown(scaled_object, spec, known))
        return known

    def known(self, scaled_object: ScaledObject, spec: TriggerSpec) -> Demand | None:
        """Return the demand as it is known now, without a query; None: nothing asked for it."""
        demand_query = self._find(scaled_object.namespace, spec)
        return None if demand_query is None else self._demand(demand_query, spec)

    def due_seconds(self, scaled_object: ScaledObject, spec: TriggerSpec) -> float:
        """Return the seconds until a newer demand can be had; infinite without a demand.

        If a due demand was not asked for, no trigger needs it: another signal says active. That may
        end with any evaluation, so it is checked once per interval.
        """
        if spec.demand is None:
            return math.inf
        interval_seconds = self._interval_seconds(spec.source)
        demand_query = self._find(scaled_object.namespace, spec)
        if demand_query is None:
            return interval_seconds
        due_seconds = demand_query.due_seconds(interval_seconds)
        return interval_seconds if due_seconds < -OVERDUE_SECONDS else max(0.0, due_seconds)

    async def close(self) -> None:
        """Cancel all running queries."""
        for demand_queries in self._demand_queries.values():
            for demand_query in list(demand_queries.values()):
                await demand_query.flight.close()

    def _demand(self, demand_query: DemandQuery, spec: TriggerSpec) -> Demand:
        """Return what is known now; where intervals are long, a number is valid for two of them."""
        interval_seconds = self._interval_seconds(spec.source)
        return demand_query.demand(max(spec.max_age_seconds, 2 * interval_seconds))

    def _key(self, namespace: str, spec: TriggerSpec) -> _Key:
        text = "" if spec.demand is None else spec.demand.text
        return _Key(self._sources[spec.source].key(spec.source, namespace), text)

    def _find(self, namespace: str, spec: TriggerSpec) -> DemandQuery | None:
        return self._demand_queries[spec.source].get(self._key(namespace, spec))

    def _find_or_add(self, namespace: str, spec: TriggerSpec) -> DemandQuery:
        """Return the query of a trigger, new if needed; raise if there are too many already."""
        key, demand_queries = self._key(namespace, spec), self._demand_queries[spec.source]
        demand_query = demand_queries.get(key) or self._new(key, namespace, spec.source)
        demand_queries[key] = demand_query  # it is asked for now
        return demand_query

    def _new(self, key: _Key, namespace: str, source: str) -> DemandQuery:
        demand_queries = self._demand_queries[source]
        if len(demand_queries) >= QUERIES_PER_SOURCE:
            raise errors.SourceRefusedError(f"{TOO_MANY}, more than {QUERIES_PER_SOURCE:,}")
        owners = [demand_query.owner for demand_query in demand_queries.values()]
        if owners.count(namespace) >= QUERIES_PER_NAMESPACE:
            message = f"{TOO_MANY} of {namespace}, more than {QUERIES_PER_NAMESPACE:,}"
            raise errors.SourceRefusedError(message)
        numbers = self._sources[source].within(namespace).numbers
        if numbers is None:
            raise errors.SourceRefusedError("it understands no demandQuery")
        flight = SingleFlight(self._clock, self._slow_seconds)
        turns = self._turns[namespace]
        return DemandQuery(key, namespace, numbers, self._observe, flight, turns)

    def _interval_seconds(self, source: str) -> float:
        """Return the interval of one expression, given how many share the source's budget."""
        share_seconds = len(self._demand_queries[source]) / self._pace.queries_per_second
        return max(self._pace.interval_seconds, share_seconds)
