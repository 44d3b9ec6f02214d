"""Every demand that triggers ask for: the same expression is asked once, for all of them.

An expression is asked when somebody wants to know, at most once per interval, and a source gets no
more of them per second than its budget: a few wake their workloads within seconds, a thousand do no
harm.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from keda_gpu_scaler import facts
from keda_gpu_scaler.demand import USUAL_PACE, Demand, DemandSpec, Pace
from keda_gpu_scaler.question import Question
from keda_gpu_scaler.source import Source
from keda_gpu_scaler.spec import ScaledObject, TriggerSpec

FORGET_SECONDS = 600.0
"""What nobody wanted to know for this long no longer counts, and is forgotten."""
LOOK_SECONDS = 60.0
BURST_SECONDS = 1.0
"""So much of its budget a source can be asked at once, after a rest."""


class _Key(NamedTuple):
    """What triggers have to have in common to share a question."""

    source: str
    namespace: str
    """Empty where the source is not asked by namespace."""
    text: str


class Demands:
    """Asks the sources; a question begins with the first who wants to know."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        observe: facts.Observer = facts.ignore,
        *,
        pace: Pace = USUAL_PACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask nothing yet.

        Args:
            sources: by the name that triggers call them; whoever made them closes them.
            observe: is told when an expression fails and when it works again.
            pace: how often to ask.
            clock: seconds that never go back.
        """
        self._sources, self._observe, self._clock = sources, observe, clock
        self._pace = pace
        self._questions: dict[_Key, Question] = {}
        self._sharing: Counter[str] = Counter()
        """How many questions each source has."""
        self._looked_at = float("-inf")
        self._busy_until = dict.fromkeys(sources, float("-inf"))
        """When each source's budget is used up to: one asking moves it by one asking's share."""

    async def ask(
        self, scaled_object: ScaledObject, spec: TriggerSpec, wanted: DemandSpec, deadline: float
    ) -> Demand:
        """Return the demand, as new as can be had before `deadline`.

        Args:
            scaled_object: whose trigger it is; a source per namespace is asked about its own.
            spec: the trigger, for its source and its `maxAge`.
            wanted: its demand.
            deadline: on this clock.
        """
        self._let_go()
        key = self._key(scaled_object, spec, wanted)
        question = self._question(key)
        if question.due_seconds(self._interval_seconds(key.source)) <= 0 and self._may_ask(key):
            question.launch()
        await question.waited(deadline)
        return question.demand(spec.max_age_seconds)

    def due_seconds(self, scaled_object: ScaledObject, spec: TriggerSpec) -> float:
        """Return how long it takes until the demand can be asked anew; infinite without one."""
        if spec.demand is None:
            return math.inf
        interval_seconds = self._interval_seconds(spec.source)
        question = self._questions.get(self._key(scaled_object, spec, spec.demand))
        left = 0.0 if question is None else question.due_seconds(interval_seconds)
        return left if left > 0 else interval_seconds

    async def close(self) -> None:
        """End what is under way."""
        for question in self._questions.values():
            await question.close()

    def _key(self, scaled_object: ScaledObject, spec: TriggerSpec, wanted: DemandSpec) -> _Key:
        alone = self._sources[spec.source].is_per_namespace
        return _Key(spec.source, scaled_object.namespace if alone else "", wanted.text)

    def _question(self, key: _Key) -> Question:
        if key not in self._questions:
            source = self._sources[key.source].within(key.namespace)
            self._questions[key] = Question(
                key.source, source, key.text, self._observe, self._clock
            )
            self._sharing[key.source] += 1
        return self._questions[key]

    def _let_go(self) -> None:
        """Forget, once in a while, what nobody wants to know: the rest may be asked more often."""
        if self._clock() < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = self._clock()
        for key, question in list(self._questions.items()):
            if question.is_idle(FORGET_SECONDS):
                del self._questions[key]
        self._sharing = Counter(key.source for key in self._questions)

    def _interval_seconds(self, source: str) -> float:
        """Return how often an expression is asked where so many share the source's budget."""
        share_seconds = self._sharing[source] / self._pace.queries_per_second
        return max(self._pace.interval_seconds, share_seconds)

    def _may_ask(self, key: _Key) -> bool:
        """Tell whether the source's budget has room for one more asking now, and take it."""
        now = self._clock()
        if self._busy_until[key.source] > now + BURST_SECONDS:
            return False
        begins = max(now, self._busy_until[key.source])
        self._busy_until[key.source] = begins + 1 / self._pace.queries_per_second
        return True
