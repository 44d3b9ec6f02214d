"""Writes deletion costs on pods before the HPA scales in, and removes what it wrote.

Each round compares what pods should have with what they have, so that nothing has to be remembered:
what an earlier process left is removed by the first round. `autoscaling.scale_in` says when a
scale-in is near, and `explain.drain` who is least busy.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling import api_objects, scale_in
from keda_gpu_scaler.autoscaling.scale_in import Forecast
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.evaluator.evaluator import Caller, Evaluator
from keda_gpu_scaler.evidence.kubernetes.api import MALFORMED, AbsentError, Api, ConflictError
from keda_gpu_scaler.evidence.kubernetes.following import HPAS, PODS, REPLICA_SETS, SCALED_OBJECTS
from keda_gpu_scaler.evidence.kubernetes.objects import Item, Resource
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.workbench import check
from keda_gpu_scaler.workbench.check import FileTrigger
from keda_gpu_scaler.workbench.explain.drain import costs_of

ROUNDS = 6
"""In the time ahead of a scale-in: by default one in 5 s, a third of the HPA's interval."""
END_SECONDS = 10.0
"""For the round under way and the removals; a container has 30 s to end."""
PATCHES_AT_ONCE = 10
Costs = Mapping[str, int]
"""By the names of pods."""


_List = TypeVar("_List", bound=Struct)


class _Raws(Struct):
    items: list[Raw]


class _Hpas(Struct):
    items: list[api_objects.HpaObject]


@dataclass(slots=True)
class _Followed:
    """One ScaledObject of a Deployment, as its spec is."""

    generation: int
    triggers: list[FileTrigger]
    forecast: Forecast = field(default_factory=Forecast)
    costs: Costs = field(default_factory=dict)
    """What its pods should have now."""
    replicas: int = 0
    """Those that there were when the costs were made."""


class CostWriter:
    """Writes costs in some namespaces. Two at a time would write against each other."""

    def __init__(  # noqa: PLR0913 - all by name
        self,
        api: Api,
        namespaces: Iterable[str],
        *,
        access: Access,
        evaluator: Evaluator,
        observe: facts.Observer,
        ahead_seconds: float,
        dry_run: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to write; `run` closes the API's connections.

        `ahead_seconds` is how long before a possible scale-in costs are written. With `dry_run`
        they are only stated as facts.
        """
        self._api, self._access, self._evaluator = api, access, evaluator
        self._observe, self._clock = observe, clock
        self._ahead_seconds, self._dry_run = ahead_seconds, dry_run
        self._followed: dict[str, dict[str, _Followed]] = {name: {} for name in namespaces}
        self._troubles: dict[str, str | None] = {}
        self._may_have_costs = dict.fromkeys(self._followed, True)
        """Whether pods of a namespace may have a cost of this program's."""

    async def run(self) -> None:
        """Write until this is cancelled; then remove what is written."""
        under_way = asyncio.create_task(self.round())
        try:
            while True:
                await asyncio.shield(under_way)
                await asyncio.sleep(self._ahead_seconds / ROUNDS)
                under_way = asyncio.create_task(self.round())
        finally:
            removals = (self._write(name, {}) for name in self._followed if not self._dry_run)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    # The API server carries out a patch that was sent, even if nobody waits for
                    # the answer.
                    await asyncio.wait({under_way})
                    await asyncio.gather(*removals, return_exceptions=True)
            under_way.cancel()
            await self._api.close()

    async def round(self) -> None:
        await asyncio.gather(*map(self._round, self._followed))

    async def _round(self, namespace: str) -> None:
        trouble = None
        try:
            costs = await self._follow(namespace)
            if not self._dry_run and (costs or self._may_have_costs[namespace]):
                self._may_have_costs[namespace] = await self._write(namespace, costs)
        except errors.SourceError as error:
            trouble = str(error)
        if self._troubles.setdefault(namespace, None) != trouble:
            self._troubles[namespace] = trouble
            works, reason = trouble is None, trouble or "they can be written again"
            resource = f"deletion costs in {namespace}"
            self._observe(facts.WatchChanged(resource, works=works, reason=reason))

    async def _follow(self, namespace: str) -> dict[str, Costs]:
        """Look at all HPAs of a namespace; return the costs of pods by their Deployments."""
        scaled = await self._get(SCALED_OBJECTS, namespace, _Raws)
        hpas = await self._get(HPAS, namespace, _Hpas)
        by_name = {hpa.metadata.name: hpa for hpa in hpas.items}
        before, self._followed[namespace] = self._followed[namespace], {}
        seen: list[tuple[str, _Followed, api_objects.HpaObject, int]] = []
        for raw in scaled.items:
            try:
                found = msgspec.json.decode(raw, type=api_objects.ScaledObject)
            except MALFORMED:
                continue  # with values that KEDA refuses
            name, target = found.metadata.name, found.status.target
            hpa = by_name.get(found.status.hpa_name)
            if hpa is None or target is None or target.resource != "deployments":
                continue
            followed = before.get(name)
            if followed is None or followed.generation != found.metadata.generation:
                triggers = self._triggers(bytes(raw).decode(), namespace)
                followed = _Followed(found.metadata.generation, triggers)
            self._followed[namespace][name] = followed
            if followed.triggers:
                ahead = followed.forecast.follow(hpa, self._clock(), self._ahead_seconds)
                seen.append((found.spec.scale_target_ref.name, followed, hpa, ahead))
        # As KEDA does, so that samples are known when they are needed.
        triggers = [trigger for _, followed, _, _ in seen for trigger in followed.triggers]
        evaluate = self._evaluator.evaluate
        await asyncio.gather(*(evaluate(*trigger, None, Caller.STREAM) for trigger in triggers))
        for _, followed, hpa, ahead in seen:
            await self._renew(followed, hpa.status.current_replicas, ahead)
        return {name: followed.costs for name, followed, _, _ in seen if followed.costs}

    def _triggers(self, text: str, namespace: str) -> list[FileTrigger]:
        """Return the triggers of a ScaledObject for this scaler; KEDA is told what is wrong."""
        objects, _ = check.read_objects({"": text}, namespace)
        parsed, _ = check.parse(objects[0].ours if objects else (), self._access)
        return parsed

    async def _renew(self, followed: _Followed, existing: int, ahead: int) -> None:
        """Make costs by the first trigger when a scale-in is near, anew for each step of it.

        `existing` are the replicas at the HPA's last sync, `ahead` those that it may set soon.
        """
        replicas, before = followed.forecast.replicas, followed.costs
        going = max(0, replicas - ahead)
        # The pods of a step may not be deleted yet; until its next sync the HPA shows it.
        is_under_way = bool(before) and existing > replicas
        followed.costs = {}
        if going or is_under_way:
            record = await self._evaluator.record(*followed.triggers[0])
            known = {} if record.state == State.UNKNOWN else costs_of(record)
            if is_under_way or (before and followed.replicas == replicas):
                followed.costs = scale_in.kept(before, known, going)
            else:
                followed.costs, followed.replicas = known, replicas
        if followed.costs != before:
            named, first = followed.triggers[0].scaled_object, tuple(followed.costs)[:going]
            self._observe(
                facts.DeletionCosts(*named, replicas, ahead, first, dry_run=self._dry_run)
            )

    async def _write(self, namespace: str, costs: Mapping[str, Costs]) -> bool:
        """Write what pods should have; tell whether one has a cost of this program's."""
        pods = PODS._replace(metadata_only=True, place=f"namespaces/{namespace}")
        replica_sets = REPLICA_SETS._replace(place=pods.place)
        of_owner = {
            Owner("ReplicaSet", item.metadata.name): costs[item.owner.name]
            for item in (await self._list(replica_sets) if costs else ())
            if item.owner.kind == "Deployment" and item.owner.name in costs
        }
        turns, changes, has_costs = asyncio.Semaphore(PATCHES_AT_ONCE), [], bool(costs)
        for item in await self._list(pods):
            notes = item.metadata.annotations
            if item.metadata.deletion_timestamp is not None:
                continue
            cost, mark = (notes.deletion_cost, notes.deletion_cost_mark) if notes else (None, None)
            wanted = of_owner.get(item.owner, {}).get(item.metadata.name)
            change = scale_in.change(cost, mark, wanted)
            has_costs |= mark is not None
            if change:
                changes.append(self._patch(turns, pods, item, change))
        for failure in await asyncio.gather(*changes, return_exceptions=True):
            if failure is not None:
                raise failure
        return has_costs

    async def _patch(
        self,
        turns: asyncio.Semaphore,
        pods: Resource,
        item: Item,
        annotations: Mapping[str, str | None],
    ) -> None:
        name, version = item.metadata.name, item.metadata.resource_version
        # One that has changed is looked at again in the next round.
        with contextlib.suppress(AbsentError, ConflictError):
            async with turns:
                await self._api.annotate(pods, name, version, annotations)

    async def _list(self, resource: Resource) -> list[Item]:
        return [item async for page in self._api.pages(resource) for item in page.items or ()]

    async def _get(self, resource: Resource, namespace: str, kind: type[_List]) -> _List:
        path = resource.path(f"namespaces/{namespace}")
        body = await self._api.body(path, f"{resource} in {namespace}")
        try:
            return msgspec.json.decode(body, type=kind)
        except MALFORMED as error:
            raise errors.SourceMalformedError(f"cannot read {path}: {error}") from error
