"""What KEDA is answered in one situation after the other, by every server.

Those that `tests/sources/prometheus/test_situations.py` has are decided on every server too.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import grpc
import pytest

from testbed.gpus import INTERVAL_SECONDS, Gpu, Up, history
from testbed.prometheus import PrometheusServer
from testbed.series import STALE, Series
from tests.stories.promises.stack import Poll, running
from tests.support import kube_state
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.kube_state import KubePod, Listed

PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcdfg"]
NODES = [f"10.0.0.{number}:9400" for number in (1, 2, 9)]
SCHEMES = ("exported", "plain", "old", "exported", "plain")
TENANT = "team-a/app"
NOT_ENDED = "did not end, and no fresh sample of them is left"
CLAIM = {"claim_name": "gpu", "resourceclaim_name": "", "resourceclaim_template_name": "one-gpu"}
"""A ResourceClaim of a pod, as kube-state-metrics shows it."""


@dataclass(frozen=True, slots=True)
class TakingTurns:
    """The series of one GPU with another pod at each scrape, as time-slicing shows it."""

    order: Sequence[str]

    def series(self, now: float) -> list[Series]:
        """Return the series of each pod, marked where it is another's turn."""
        times = [now - INTERVAL_SECONDS * back for back in reversed(range(60))]
        turns = list(zip(times, itertools.cycle(self.order)))
        return [
            Series(
                "DCGM_FI_DEV_GPU_UTIL",
                Gpu(pod, 90, uuid="GPU-shared").series(now).labels,
                [(at, 90.0 if turn == pod else STALE) for at, turn in turns],
            )
            for pod in set(self.order)
        ]


Answers = Sequence[tuple[Mapping[str, str], Poll | str]]
"""The keys of a trigger, and what KEDA learns, or why nothing is known of its activity."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a server holds, and what is answered of deployment/bert at a threshold of 70."""

    gpus: Sequence[Gpu | Up | TakingTurns]
    answers: Answers
    listed: Sequence[KubePod | Listed] = ()
    """What kube-state-metrics shows beside its health and the owner of the ReplicaSet."""
    without_gpus: frozenset[str] = frozenset()
    kube: Sequence[Listed] = field(default_factory=lambda: (kube_state.up(), kube_state.BERT))

    def series(self, now: float) -> list[Series]:
        """Return everything that is to be stored."""
        has_up = any(isinstance(part, Up) and part.instance == NODES[0] for part in self.gpus)
        gpus = history(now, [] if has_up else [Up()])
        for part in self.gpus:
            gpus += part.series(now) if isinstance(part, TakingTurns) else [part.series(now)]
        said = [*self.kube, *self.listed] if self.listed else []
        return [*gpus, *kube_state.history(now, said)]


def answers(value: float | None, *, active: bool = True, **keys: str) -> Answers:
    return [(keys, Poll(70, value, active=active))]


def lost(pod: str, value: float = 90, at: float = -300) -> list[Gpu | Up]:
    """Return the GPU of a pod whose node left discovery, and whose exporter went with it."""
    return [Up(instance=NODES[2], gone=at), Gpu(pod, value, instance=NODES[2], end=at)]


def shared(pod: str, number: int, end: float | None = None) -> Gpu:
    """Return a GPU that several pods have, as the device plugin's virtual mode shows it."""
    return Gpu(pod, 90, uuid="GPU-shared", extra={"vgpu": str(number)}, end=end)


DEVICE = Gpu("device", 90, uuid="GPU-shared", convention="idle")
AN_HOUR = [Gpu(PODS[0], 60, begin=-3600), Gpu(PODS[1], 60, begin=-3600)]
TWO = [KubePod(name=pod) for pod in PODS[:2]]


def claiming(ready_since: float) -> KubePod:
    return KubePod(name=PODS[2], asks_gpu=False, claim=CLAIM, ready_since=ready_since)


def pending() -> KubePod:
    return KubePod(
        name=PODS[0], created=-600, ready=None, phase="Pending", unschedulable=True, begin=-600
    )


SITUATIONS = {
    "five pods with two GPUs each in three label schemes on two nodes, and a canary": Situation(
        [
            Up(instance=NODES[1]),
            *(
                Gpu(pod, load, uuid=f"{pod}-{load}", convention=scheme, instance=node)
                for pod, scheme, node in zip(PODS, SCHEMES, NODES[:2] * 3, strict=False)
                for load in (80, 100)
            ),
            Gpu("bert-canary-7b6667bd9-bbbbb", 100),
        ],
        answers(450),
    ),
    "all exporters are lost": Situation(
        [Up(down=-300), *(Gpu(pod, 90, end=-300) for pod in PODS)], [({}, NOT_ENDED)]
    ),
    "an exporter that lost its map of pods does not end them": Situation(
        [
            *(Gpu(pod, 90, end=-180) for pod in PODS),
            *(Gpu(pod, 90, convention="idle", begin=-165) for pod in PODS),
        ],
        [({}, "did not end")],
    ),
    # Pods that share one GPU.
    "pods that take turns all count": Situation([TakingTurns(PODS[:3])], answers(270, warmup="0s")),
    "copies of a device count once for each pod": Situation(
        [DEVICE, *(shared(pod, number) for number, pod in enumerate([*PODS[:3], PODS[0]]))],
        answers(270),
    ),
    "a pod that leaves a shared GPU has ended though the device is busy": Situation(
        [DEVICE, shared(PODS[0], 0), shared(PODS[1], 1, end=-120)], answers(90)
    ),
    # What kube-state-metrics makes certain.
    "a pod of another owner does not count, and one that is not listed yet does": Situation(
        [Gpu(pod, 90) for pod in PODS[:3]],
        answers(180),
        [
            KubePod(name=PODS[0]),
            KubePod(name=PODS[1], owner=("ReplicaSet", "other")),
            kube_state.link("ReplicaSet", "other", ("Deployment", "bert-7b6667bd9")),
        ],
    ),
    **{
        f"a pod that is {word} does not count while it is still shown": Situation(
            [Gpu(pod, 90) for pod in PODS[:3]], answers(180), [*TWO, gone]
        )
        for word, gone in {
            "terminating": KubePod(name=PODS[2], deleting=True),
            "succeeded": KubePod(name=PODS[2], phase="Succeeded", ready=False),
            "failed": KubePod(name=PODS[2], phase="Failed", ready=False),
        }.items()
    },
    "the exporter and its node went together with the last pod": Situation(
        lost(PODS[0]), answers(0, active=False), [kube_state.replicas(0)]
    ),
    "a workload that kube-state-metrics does not list is no workload without pods": Situation(
        [Gpu(PODS[0], 90)],
        [
            ({"workload": "bret"}, r"there is no deployment/bret \(did you mean bert\?\)"),
            (
                {"workload": "sts/bert"},
                "there is no statefulset/bert .did you mean deployment/bert",
            ),
            *answers(90),
        ],
        [KubePod(name=PODS[0]), kube_state.replicas(1), kube_state.stateful(1)],
    ),
    # Whoever is scraped can name any pod; what is shown of the last hour counts for nothing too.
    "pods that another job has made up": Situation(
        [
            *AN_HOUR,
            Up(job=TENANT, instance=NODES[2]),
            *(Gpu(pod, 100, job=TENANT, instance=NODES[2], begin=-3600) for pod in PODS[2:]),
        ],
        answers(120),
        [*TWO, kube_state.replicas(2), kube_state.wanted(2)],
    ),
    "pods that another job has made up of a workload with no replicas": Situation(
        [
            *lost("router-0", 0),
            Up(job=TENANT, instance=NODES[2]),
            *(Gpu(pod, 100, job=TENANT, instance=NODES[2]) for pod in PODS),
        ],
        answers(0, active=False),
        [KubePod(name="router-0", owner=("", "")), kube_state.replicas(0)],
    ),
    "two labels that name a pod, of which the cluster lists one": Situation(
        [
            Gpu(PODS[0], 60, convention="plain", extra={"pod_name": "node-7"}),
            Gpu(PODS[1], 60, convention="plain", extra={"exported_pod": "node-7"}),
        ],
        answers(120),
        [*TWO, kube_state.replicas(2), kube_state.wanted(2)],
    ),
    # A rollout replaces requests by ResourceClaims, and the exporter names no pod with claims.
    "a pod that moved to a claim an hour ago takes nothing away": Situation(
        AN_HOUR, answers(190), [*TWO, claiming(-3600), kube_state.replicas(3)]
    ),
    "a claim that is for no GPU changes nothing": Situation(
        AN_HOUR,
        answers(120),
        [*TWO, claiming(-3600), kube_state.replicas(3)],
        without_gpus=frozenset({"one-gpu"}),
    ),
    "a pending pod keeps its workload active until its time is over": Situation(
        [],
        [*answers(None), *answers(None, active=False, startTimeout="5m")],
        [pending(), kube_state.replicas(1)],
    ),
    # Its last word, two minutes old, was that there are no replicas; a pod was seen after it.
    "kube-state-metrics that is down proves nothing": Situation(
        lost(PODS[0], 0, at=-100),
        [({}, NOT_ENDED)],
        [Listed(metric="kube_pod_owner", labels={"namespace": "ml", "pod": "other"}, end=-120)],
        kube=[kube_state.up(end=-120)],
    ),
    # The pod is in `exported_pod` then; nothing may follow from its absence in `pod`.
    "without honor_labels a list that looks empty is no evidence": Situation(
        [Gpu(PODS[0], 0), *lost(PODS[1])],
        answers(None),
        [
            Listed(
                metric="kube_pod_owner",
                labels={
                    "namespace": "monitoring",
                    "pod": "kube-state-metrics-0",
                    "exported_namespace": "ml",
                    "exported_pod": PODS[0],
                },
            )
        ],
        kube=[kube_state.up()],
    ),
}


@ON_EVERY_SERVER
@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
async def test_what_keda_is_answered(prometheus: PrometheusServer, situation: Situation) -> None:
    await prometheus.write(situation.series(prometheus.now()))
    known = situation.without_gpus
    async with running(prometheus.url, step="15s", without_gpus=known) as stack:
        for keys, expected in situation.answers:
            if isinstance(expected, Poll):
                assert await stack.poll(**keys) == expected
                continue
            assert await stack.value(**keys) is None
            with pytest.raises(grpc.aio.AioRpcError, match=expected):
                await stack.active(**keys)
