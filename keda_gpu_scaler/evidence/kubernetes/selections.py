"""The label selectors of the scale targets in use, read repeatedly.

A selector is read from the scale subresource, as the HPA reads it, and as often. It can change, so
a selector that could not be read for a while is not trusted, and neither is its selection. Nor is
one that is made for the HPA alone: it selects one pod of each replica, to count them. Of targets
whose groups of pods are known (`groups`), only the part that selects all of them is used.

The text is that of `status.selector` in a scale subresource, with labels and their values alone:
`app=bert,tier in (gpu)`. What other conditions select, the trigger's podPattern can say.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kubernetes.api import Api
from keda_gpu_scaler.evidence.kubernetes.groups import GROUPED, Grouped, group
from keda_gpu_scaler.evidence.kubernetes.objects import ScaleReference
from keda_gpu_scaler.snapshot.evidence import PodKey, PodStatement
from keda_gpu_scaler.spec.workload import NO_OWNER, Owner, Selected
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import FORGET_SECONDS

Labels = Mapping[str, str]

_PART = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = f"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_PART}"
_LABEL = re.compile(rf"({_KEY})(?: *==? *((?:{_PART})?)| in \( *((?:{_PART})?) *\))")
"""Kubernetes writes a set of one value as `app in (bert)`."""
_LONGEST = 2000
"""Every pod is compared with a selector; usual ones have tens of characters."""


def parse_selector(text: str) -> Labels:
    """Return the labels in the text of a selector, which a pod has if it is selected.

    Raises:
        ValueError: the text is none of labels, or it is empty. An empty selector selects every pod
            in Kubernetes, but a scale target without a selector yet shows the same.
    """
    if not text.strip():
        raise ValueError("it is empty, which would be every pod of the namespace")
    if len(text) > _LONGEST:
        raise ValueError(f"it is longer than {_LONGEST} characters")
    labels: dict[str, str] = {}
    for condition in text.split(","):
        match = _LABEL.fullmatch(condition.strip())
        value = match and (match[2] if match[2] is not None else match[3])
        if match is None or labels.setdefault(match[1], value or "") != value:
            raise ValueError(
                f"{condition[:100]!r} is no label with one value, such as app=bert: use podPattern"
            )
    return labels


def every_pod(selector: Labels, grouped: Grouped) -> Labels:
    """Return the labels that all pods of a target have, and not one of each group alone.

    Raises:
        ValueError: without one of them it would be the pods of other targets as well.
    """
    for key in grouped.whose:
        if key not in selector:
            raise ValueError(f"it gives no value for {key}, the label that says whose a pod is")
    return {key: selector[key] for key in grouped.whose}


READ_SECONDS = 15.0
"""The HPA controller reads the selector of every target at the same interval."""
BELIEVED_SECONDS = 60.0
"""A selector that could not be read for longer may have changed."""
LIMIT = 500
"""About 33 requests a second to the API server."""
READ_AT_ONCE = 10
"""Watches need some of the connections too."""


@dataclass(slots=True)
class _Known:
    """The selector of one scale target, and how reading it went."""

    used_at: float = float("-inf")
    selector: Labels | None = None
    """The last selector that could be read."""
    trusted_at: float = float("-inf")
    """When the last successful read began; -inf: its selector is none that can be trusted."""
    tried_at: float = float("-inf")
    trouble: str | None = None
    """Why the last read failed; None: it succeeded, or is the first one."""
    doubt: str | None = None
    """What is wrong with the selected pods; None: nothing."""
    reading: asyncio.Task[None] | None = None


class Selections:
    """The selectors of one cluster's scale targets."""

    def __init__(self, api: Api, observe: facts.Observer, clock: Callable[[], float]) -> None:
        """Start without selectors; `learn` adds them.

        `observe` receives a fact when not all selectors of one kind of target can be read, and when
        all can be read again.
        """
        self._api, self._observe, self._clock = api, observe, clock
        self._known: dict[ScaleReference, _Known] = {}
        self._works: dict[str, bool] = {}
        self._turns = asyncio.Semaphore(READ_AT_ONCE)

    async def learn(self, scale: ScaleReference) -> None:
        """Read a selector; wait for it unless a trusted one is known."""
        if scale not in self._known:
            self._forget()
        if scale in self._known or len(self._known) < LIMIT:
            known = self._known.setdefault(scale, _Known())
            known.used_at = self._clock()
            self._read_again(scale, known)
            if known.reading is not None and not self._is_trusted(known):
                await asyncio.wait({known.reading})

    def pods(self, scale: ScaleReference) -> Selected | str:
        known = self._known.get(scale)
        if known is None:
            return f"{LIMIT} other selectors are read already"
        if known.selector is None:
            return known.trouble or "its selector was not read yet"
        return scale.pods

    def renew(self, namespaces: Collection[str]) -> None:
        """Begin to read the selectors again that are in use and were read too long ago."""
        self._forget()
        for scale, known in self._known.items():
            if scale.namespace in namespaces:
                self._read_again(scale, known)

    def selecting(self, namespace: str, pod: str, labels: Labels) -> set[Owner]:
        """Return the scale targets that select a pod, by their last selectors.

        Where a replica is a group of pods, its group is among them, if the labels name it.
        """
        owners = set[Owner]()
        for scale, known in self._known.items():
            selector = known.selector if scale.namespace == namespace else None
            if selector is not None and selector.items() <= labels.items():
                owners.add(scale.pods.selected_by)
                grouped = GROUPED.get(str(scale.resource))
                replica = None if grouped is None else group(grouped, pod, labels)
                if replica is not None:
                    owners.add(Owner(scale.pods.replica_kind, replica))
        return owners

    def trusted(
        self, namespaces: Collection[str], pods: Mapping[PodKey, PodStatement]
    ) -> frozenset[tuple[str, Owner]]:
        """Return the scale targets with trusted selectors, with their namespaces.

        `pods` are those of these namespaces; the owners of each include the scale targets that
        select it.
        """
        doubts = self._left_out(pods) | self._ungrouped(pods)
        trusted = set[tuple[str, Owner]]()
        for scale, known in self._known.items():
            if scale.namespace in namespaces:
                target = scale.namespace, scale.pods.selected_by
                known.doubt = doubts.get(target)
                if self._is_trusted(known) and known.doubt is None:
                    trusted.add(target)
        self._report()
        return frozenset(trusted)

    def _left_out(self, pods: Mapping[PodKey, PodStatement]) -> dict[tuple[str, Owner], str]:
        """Return the scale targets that leave out a pod with a GPU, with a sentence's end about it.

        It has the same owner as a selected pod, or its owner has the name of a selected pod: the
        workers of a LeaderWorkerSet's group are in a StatefulSet with the name of their leader.
        """
        targets = {(scale.namespace, scale.pods.selected_by) for scale in self._known}
        if not targets:
            return {}
        selecting = defaultdict[tuple[str, Owner], set[Owner]](set)
        for (namespace, name), pod in pods.items():
            selected_by = {owner for owner in pod.owners if (namespace, owner) in targets}
            for owner in {*pod.owners, Owner("StatefulSet", name)} if selected_by else ():
                selecting[namespace, owner] |= selected_by
        return {
            (namespace, target): f"leaves out {name}, which belongs to selected pods"
            for (namespace, name), pod in pods.items()
            for owner in pod.owners
            if pod.asks_gpu and not pod.ended and owner != NO_OWNER
            for target in selecting.get((namespace, owner), set()) - pod.owners
            if "/" not in owner.kind  # another target, or a group of one
        }

    def _ungrouped(self, pods: Mapping[PodKey, PodStatement]) -> dict[tuple[str, Owner], str]:
        """Return the scale targets that select a pod of an unknown group, in the same way."""
        kinds = {
            (scale.namespace, scale.pods.selected_by): scale.pods.replica_kind
            for scale in self._known
            if str(scale.resource) in GROUPED
        }
        return {
            (namespace, owner): f"selects {name}, which has no label that names its replica"
            for (namespace, name), pod in (pods.items() if kinds else ())
            for owner in pod.owners
            if (namespace, owner) in kinds
            and not pod.ended
            and not any(other.kind == kinds[namespace, owner] for other in pod.owners)
        }

    async def close(self) -> None:
        tasks = [known.reading for known in self._known.values() if known.reading is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_trusted(self, known: _Known) -> bool:
        return self._clock() - known.trusted_at <= BELIEVED_SECONDS

    def _forget(self) -> None:
        since = self._clock() - FORGET_SECONDS
        for scale, known in list(self._known.items()):
            if known.reading is None and known.used_at < since:
                del self._known[scale]
        self._report()

    def _read_again(self, scale: ScaleReference, known: _Known) -> None:
        now = self._clock()
        if known.reading is None and now - known.tried_at >= READ_SECONDS:
            known.tried_at = now
            known.reading = asyncio.create_task(self._read(scale, known), name=f"read {scale}")

    async def _read(self, scale: ScaleReference, known: _Known) -> None:
        try:
            async with self._turns:
                text = await self._api.selector(scale)
            selector, grouped = parse_selector(text), GROUPED.get(str(scale.resource))
            known.selector = selector if grouped is None else every_pod(selector, grouped)
            known.trusted_at, known.trouble = known.tried_at, None
        except errors.SourceError as error:
            known.trouble = str(error)
        except ValueError as error:
            known.trusted_at, known.trouble = float("-inf"), f"the selector of {scale}: {error}"
        finally:
            known.reading = None
        self._report()

    def _report(self) -> None:
        """Report for each kind of target whether all its selectors can be read, if that changed."""
        troubles: dict[str, str | None] = dict.fromkeys(self._works)
        for scale, known in self._known.items():
            if known.selector is not None or known.trouble is not None:
                kind, trouble = str(scale.resource), known.trouble
                if known.doubt is not None:
                    trouble = f"the selector of {scale} {known.doubt}"
                troubles[kind] = troubles.get(kind) or trouble
        for kind, trouble in troubles.items():
            works = trouble is None
            if self._works.get(kind) is not works:
                self._works[kind] = works
                reason = trouble or "all that are asked for can be read"
                self._observe(facts.WatchChanged(f"{kind}/scale", works=works, reason=reason))
