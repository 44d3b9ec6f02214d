"""Judges every answer in a loop: two scalers are asked, of which one is restarted at random."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Samples
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.spec.spec import Aggregation, SnapshotQuery
from testbed.loops.loop import Loop
from testbed.loops.monitoring import LOOKBACK, Monitoring
from testbed.triggers import BERT
from tests.stories.loops.truth import RAISING, Truth, broken

MORE_PERCENT = 20.0
"""How much more the GPUs of the same cluster show, to see that no answer becomes smaller."""
RESTARTS = 0.02
"""How often the second scaler is restarted, per step."""


class More:
    """The samples of the same cluster, in which each GPU shows more."""

    def __init__(self, shown: Monitoring) -> None:
        self._shown = shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shown, name)

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        return _raised(await self._shown.fetch(snapshot_query, at))

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        past = await self._shown.history(snapshot_query, at)
        return None if past is None else _raised(past)


def _raised(observation: Observation) -> Observation:
    series = tuple(
        replace(one, values=tuple(min(100.0, value + MORE_PERCENT) for value in one.values))
        for one in observation.series
    )
    return replace(observation, series=series)


@dataclass(slots=True)
class Judge:
    """Asks two scalers about a loop, and holds every answer to the promises."""

    loop: Loop
    chance: random.Random
    decisions: int = 0
    states: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    """How often a rule decided, or what it is about was the case."""
    found: list[str] = field(default_factory=list)
    """Each broken promise, with the time and the answer."""
    _second: Evaluator = field(init=False)
    _more: Evaluator = field(init=False)
    _raising: Evaluator = field(init=False)
    """Is asked by another aggregation, which may raise the sum and never lower it."""
    _restarted_at: float | None = field(default=None, init=False)
    _knows_none: list[bool] = field(default_factory=lambda: [False, False], init=False)
    """Whether each of the two knew that there are no pods, and nothing has happened since."""

    def __post_init__(self) -> None:
        """Start the others beside the loop's own scaler."""
        self._second = self.loop.evaluator()
        self._more = self.loop.evaluator(cast("Samples", More(self.loop.monitoring)))
        self._raising = self.loop.evaluator()
        self.loop.also = self._judge

    async def _judge(self, first: Decision, timeout_seconds: float | None) -> None:
        """Ask the others the same, and judge what they answer."""
        trigger = self.loop.trigger
        if self.chance.random() < RESTARTS:
            self._second, self._restarted_at = self.loop.evaluator(), self.loop.clock
            self._knows_none[1] = False
        second = await self._second.evaluate(BERT, trigger, timeout_seconds)
        more = await self._more.evaluate(BERT, trigger, timeout_seconds)
        other = replace(trigger, aggregation=RAISING[self.loop.seed % 2])
        raised = await self._raising.evaluate(BERT, other, timeout_seconds)
        if self._restarted_at is None and second != first:
            self._note(f"the same history, and not the same answer as: {first.reason}", second)
        self._judge_one(0, first, float("inf"))
        learning = (
            float("inf") if self._restarted_at is None else self.loop.clock - self._restarted_at
        )
        self._judge_one(1, second, learning)
        self._compare(first, more)
        self._compare_sum(first, raised, other.aggregation)

    def _compare_sum(self, first: Decision, raised: Decision, aggregation: Aggregation) -> None:
        """Judge the answer by another aggregation: in all but its value it is that of the sum."""
        value = first.value
        if raised.value is not None and value is not None:
            value = max(value, raised.value)
        told = replace(first, value=value, reason=raised.reason)
        if self.loop.trigger.aggregation is Aggregation.SUM and raised != told:
            self._note(f"less by {aggregation} than by the sum: {first.reason}", raised)

    def _compare(self, less: Decision, more: Decision) -> None:
        """Judge the answers to two loads; one that holds is not smaller, unless the other raises.

        A load that is not known asks for as many replicas as there are, and that is a hold as well.
        By exporters alone a replica that drains counts, and can be a reason to raise.
        """
        truth = Truth(self.loop)
        least = 0 if _holds(truth, more) else truth.asked(less)
        if _holds(truth, more) and (truth.is_told or truth.is_whole):
            least = truth.asked(less)
        asked = truth.asked(more) if more.value is not None else max(truth.wanted_lately)
        is_less = not _holds(truth, less) and asked < least
        if is_less or (less.active and more.active is False):
            self._note(f"more load, and a smaller answer than: {less.reason}", more)

    def _judge_one(self, number: int, decided: Decision, age_seconds: float) -> None:
        truth = Truth(self.loop)
        self.decisions += 1
        self.states[decided.state] += 1
        self.rules.update(rules_at_work(self.loop, decided))
        who = "a scaler that was restarted" if number else "a scaler"
        for promise in broken(truth, decided, age_seconds):
            self._note(f"{promise} by {who}", decided)
        if truth.has_pods or decided.activated:
            self._knows_none[number] = False
        elif self._knows_none[number] and decided.active is not False:
            if not (self.loop.monitoring.second and age_seconds < LOOKBACK):
                self._note(
                    f"a workload known to have no pods is answered otherwise by {who}", decided
                )
        elif decided.active is False and decided.has_no_pods:
            self._knows_none[number] = True

    def _note(self, promise: str, decided: Decision) -> None:
        loop = self.loop
        answer = f"{decided.state}, {decided.value}, {decided.active}: {decided.reason}"
        self.found.append(
            f"after {loop.clock - loop.begin:.0f} s, {loop.replicas} replicas: {promise}; {answer}"
        )


def _holds(truth: Truth, decided: Decision) -> bool:
    """Tell whether an answer asks for as many replicas as there are because the load is unknown."""
    is_number = decided.value is not None
    return not is_number or (
        decided.state is not State.MEASURED and truth.asked(decided) == truth.loop.replicas
    )


_WORDS = {
    "pending": "more of its replicas are not Ready",
    "left": "and those that just left",
    "full": "all of them full, and the others that are Ready count as full",
    "stopped asking": "the HPA has stopped asking about it",
    "asks": "which has replicas then, and no exporter shows one",
}
RULES = (*_WORDS, "unseen", "moved", "shared", "map", "pair", "woken")
"""The rules that a history has to show, by what they are about."""


def rules_at_work(loop: Loop, decided: Decision) -> Iterator[str]:
    """Yield the rules that an answer is due to, or that decide in the situation it is about."""
    yield from (rule for rule, words in _WORDS.items() if words in decided.reason)
    if "more of its replicas is not Ready" in decided.reason:
        yield "pending"
    if decided.unseen:
        yield "unseen"
    if decided.state is State.EMPTY and decided.active:
        yield "woken"
    if loop.evidence is EvidenceSource.EXPORTERS:
        yield from _by_exporters(loop)


def _by_exporters(loop: Loop) -> Iterator[str]:
    now, trigger = loop.clock, loop.trigger
    half_reach = trigger.warmup_seconds + 60
    placed = [pod for pod in loop.pods if pod.placed <= now < pod.gone]
    if any(pod.called and now - pod.placed < half_reach and pod.number for pod in placed):
        yield "moved"
    shares = len(placed) > 1
    if shares and any(trigger.warmup_seconds <= now - pod.placed < half_reach for pod in placed):
        yield "shared"
    if any(pod.unnamed[0] <= now < pod.unnamed[1] for pod in placed):
        yield "map"
    second = loop.monitoring.second
    if second is not None and any(
        pod.gone <= now < pod.gone + LOOKBACK and second.down[0] < pod.gone < second.down[1]
        for pod in loop.pods
    ):
        yield "pair"
