"""Pods with a life of their own, each on a node of its own."""

import random
from dataclasses import dataclass

from keda_gpu_scaler.snapshot.evidence import PodStatement, Unschedulable
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.workbench.world.loop import NEVER, STEP_SECONDS, SimulatedReplica
from testbed.loops.dialects import Asked

NODE_GRACE = 40
"""How long the control plane waits for a node before its pods are not Ready."""
_LETTERS = "bcdfghjklmnpqrstvwxz"
_REPLICA_SET = Owner("ReplicaSet", "bert-7b6667bd9")


@dataclass(slots=True)
class SimPod(SimulatedReplica):
    """One pod of a Deployment, or of a group of a LeaderWorkerSet, to which anything can happen."""

    worker: int | None = None
    """Its place in its group, of which 0 leads; None: it is a replica by itself."""
    called: str = ""
    """Its name, if its owner does not make it up."""
    silent: float = NEVER
    """From here on its exporter does not answer."""
    unlisted: float = NEVER
    """From here on its exporter is not even listed."""
    completed: float = NEVER
    refused_since: float = NEVER
    """From here on its GPU shows no number that can be believed."""
    lost: float = NEVER
    """Its node is gone from here on, and all that runs there."""
    exporter_since: float = -NEVER
    """Its node's exporter answers from here on."""
    unnamed: tuple[float, float] = (NEVER, NEVER)
    """From and until when its exporter shows the GPU without any pod."""
    blank: tuple[float, float] = (NEVER, NEVER)
    """From and until when its exporter shows no GPU at all, and is scraped well."""
    failing: float = 0.0
    """Which share of the scrapes of its exporter fail, each by chance."""
    foreign_since: float = NEVER
    """From here on a process outside Kubernetes keeps its GPU busy."""
    asks: str = "nvidia.com/gpu"
    """The resource that it asks for."""
    gpu_count: int = 1
    """How many GPUs it has; they share its work, and 0: no exporter shows it."""
    part: float = 1.0
    """How much it does, beside the other pods of its replica."""

    @property
    def name(self) -> str:
        if self.called:
            return self.called
        if self.worker is not None:
            return f"bert-{self.number}-{self.worker}" if self.worker else f"bert-{self.number}"
        return f"bert-7b6667bd9-{_LETTERS[self.number // 20 % 20] * 4}{_LETTERS[self.number % 20]}"

    @property
    def gpus(self) -> list[str]:
        """Return the UUIDs of its GPUs; no two pods have the same node."""
        return [f"GPU-{self.worker or 0}-{self.number}-{n}" for n in range(self.gpu_count)]

    @property
    def target(self) -> Target:
        return Target("dcgm", f"10.0.{self.worker or 0}.{self.number}:9400")

    @property
    def is_replica(self) -> bool:
        """Whether it stands for its replica: it is one, or leads one."""
        return not self.worker

    def exists(self, now: float) -> bool:
        return self.created <= now < self.gone

    def works(self, now: float) -> bool:
        return self.ready <= now < min(self.deleted, self.completed, self.lost)

    def counts(self, now: float) -> bool:
        return self.created <= now < min(self.deleted, self.completed)

    def scraped(self, now: float) -> bool:
        since = max(self.placed, self.exporter_since)
        is_there = since <= now < min(self.silent, self.unlisted, self.lost)
        if not self.failing:
            return is_there
        chance = random.Random(f"{self.number} {now // STEP_SECONDS}")
        return is_there and chance.random() >= self.failing

    def is_shown(self, now: float) -> bool:
        """Tell whether a scrape shows its GPU, with the pod or without."""
        return (
            bool(self.gpu_count) and self.scraped(now) and not self.blank[0] <= now < self.blank[1]
        )

    def is_busy_without_pod(self, now: float) -> bool:
        """Tell whether a scrape shows its GPU busy and names no pod."""
        is_busy = bool(self.exported(now)) or now >= self.foreign_since
        return self.is_shown(now) and not self.is_named(now) and is_busy

    def is_named(self, now: float) -> bool:
        """Tell whether a scrape shows a number of it."""
        return self.value(now) is not None

    def value(self, now: float) -> float | None:
        """Return what a scrape shows, if it shows the pod."""
        is_named = now < self.gone and not self.unnamed[0] <= now < self.unnamed[1]
        if not is_named or not self.is_shown(now):
            return None
        return self.exported(now)

    def order(self) -> tuple[str, float]:
        return self.called, self.ready

    def collect(self, now: int, share: float) -> None:
        """Let the exporter look: a pod that drains still does its share."""
        if self.placed <= now < self.gone:
            busy = share if now >= self.ready else self.loading
            self.shown[now] = 0.0 if self.completed <= now else min(100.0, self.part * busy)

    def said(self, now: float, asked: Asked) -> PodStatement:
        ready = self.ready <= now < min(self.completed, self.lost + NODE_GRACE)
        return PodStatement(
            owners=self.owners,
            created_at=self.created,
            ready=ready,
            ready_at=self.ready if ready else None,
            was_ready=self.ready <= now and not ready,
            ended=min(self.deleted, self.completed, self.gone) <= now,
            asks_gpu=asked.asks_gpu,
            devices=asked.devices,
            unschedulable=Unschedulable(self.created) if now < self.placed else None,
        )

    @property
    def owners(self) -> frozenset[Owner]:
        if self.worker is None:
            return frozenset({_REPLICA_SET, Owner("Deployment", "bert")})
        leaders = f"bert-{self.number}" if self.worker else "bert"
        return frozenset({Owner("StatefulSet", leaders)})
