"""Evaluates the triggers of a folder at their sources' step, unless KEDA asks about them.

Whatever fails here is a line of the log and nothing more: it is advice.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Protocol

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.observing import manifests
from keda_gpu_scaler.observing.folder import Folder
from keda_gpu_scaler.observing.manifests import Observed
from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access

LONGEST_PAUSE_SECONDS = 15.0
"""The usual step of a source, and how soon a change of the files is noticed."""
AT_ONCE = 5
"""How many are evaluated before others get their turn."""
REFUSED_SHOWN = 100
"""Of one reading of the files."""


class Evaluations(Protocol):
    """Decides the triggers that are observed."""

    async def evaluate(
        self,
        scaled_object: ScaledObject,
        trigger_spec: TriggerSpec,
        timeout_seconds: float | None,
        /,
    ) -> Decision:
        """Decide a trigger within a few seconds, as for a poll of KEDA's."""

    async def demand(
        self,
        scaled_object: ScaledObject,
        trigger_spec: TriggerSpec,
        timeout_seconds: float | None,
        /,
    ) -> Demand:
        """Ask for the demand of a trigger that has one."""

    def until_news_seconds(
        self, scaled_object: ScaledObject, trigger_spec: TriggerSpec, /
    ) -> float:
        """Return how long after an evaluation the decision can change."""

    def summaries(self, namespace: str | None = None, /) -> Iterator[Summary]:
        """Yield the recent decision about each trigger."""

    async def records(self, scaled_object: ScaledObject, /) -> list[Record]:
        """Return a record of each trigger of a ScaledObject."""


class Observing:
    """Observes the triggers of a folder from `start` until `close`."""

    def __init__(  # noqa: PLR0913 - the composition root's values, all by name
        self,
        folder: Folder,
        *,
        access: Access,
        evaluations: Evaluations,
        asked_about: Callable[[], Collection[ScaledObject]],
        observe: facts.Observer,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take what is observed, and what decides it.

        Args:
            folder: the files with ScaledObjects.
            access: what ScaledObjects are allowed, by their namespace.
            evaluations: decides; it has no part in what KEDA is answered.
            asked_about: returns the ScaledObjects that KEDA asks about, which are left to it.
            observe: is called with what was read, refused and failed.
            sleep: waits so many seconds.
        """
        self._folder, self._access, self._evaluations = folder, access, evaluations
        self._asked_about, self._observe, self._sleep = asked_about, observe, sleep
        self._triggers: Sequence[Observed] = ()
        self._failing: set[ScaledObject] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read and to evaluate."""
        self._task = asyncio.create_task(self._run(), name="observe")

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def summaries(self, namespace: str | None) -> Iterator[Summary]:
        """Yield what was decided of those that KEDA does not ask about."""
        kept = {str(one.scaled_object) for one in self._due()}
        return (one for one in self._evaluations.summaries(namespace) if one.scaled_object in kept)

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        """Return the records of a ScaledObject that is observed; none of any other."""
        if all(one.scaled_object != scaled_object for one in self._triggers):
            return []
        return await self._evaluations.records(scaled_object)

    async def round(self) -> float:
        """Read what has changed and evaluate all; return the seconds until there can be news."""
        await self._reread()
        due = self._due()
        for begin in range(0, len(due), AT_ONCE):
            await asyncio.gather(*map(self._evaluated, due[begin : begin + AT_ONCE]))
            await asyncio.sleep(0)
        news = (self._evaluations.until_news_seconds(*one) for one in due)
        return min(news, default=LONGEST_PAUSE_SECONDS)

    async def _run(self) -> None:
        while True:
            seconds = await self.round()
            await self._sleep(min(seconds, LONGEST_PAUSE_SECONDS))

    def _due(self) -> list[Observed]:
        asked_about = self._asked_about() if self._triggers else ()
        return [one for one in self._triggers if one.scaled_object not in asked_about]

    async def _reread(self) -> None:
        contents = await asyncio.to_thread(self._folder.changed)
        if contents is None:
            return
        reading = await asyncio.to_thread(manifests.read, contents.texts, self._access)
        self._triggers = reading.triggers
        refused = [*contents.refused, *reading.refused]
        for one in refused[:REFUSED_SHOWN]:
            self._observe(facts.ObserveRefused(*one))
        left_out = max(0, len(refused) - REFUSED_SHOWN)
        files, triggers = len(contents.texts), len(reading.triggers)
        self._observe(facts.ObserveRead(files, triggers, len(refused), left_out))

    async def _evaluated(self, one: Observed) -> None:
        scaled_object, spec = one
        try:
            if spec.demand is not None and spec.demand.threshold is not None:
                await self._evaluations.demand(scaled_object, spec, None)  # the HPA would ask
            await self._evaluations.evaluate(scaled_object, spec, None)
        except Exception as error:  # noqa: BLE001 - whatever it is, KEDA's answers go on
            if scaled_object not in self._failing:
                self._failing.add(scaled_object)
                self._observe(facts.ObserveFailed(scaled_object, error))
        else:
            self._failing.discard(scaled_object)
