"""Random histories of one workload: what may happen to it, drawn from a seed.

Each has a theme, which is what a rule of the decisions is about, with sizes, times and loads at
random. It goes on with what happens anywhere: loads that change, outages, and the way to zero and
back. No fault is among them that docs/limits.md names.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keda_gpu_scaler.autoscaling.rules import Hpa, Tolerances
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import Aggregation, TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS, NEVER, STEP_SECONDS
from testbed.loops.dialects import EXPORTERS_POD, Dialect
from testbed.loops.loop import BEGIN, Loop
from testbed.loops.monitoring import Scrapes, Second, each_at_its_own_second
from testbed.loops.pods import SimPod
from testbed.triggers import demanding, spec
from tests.stories.loops.judge import Judge

EXPORTERS = (EvidenceSource.EXPORTERS,)
TOLD = (EvidenceSource.KUBE_STATE_METRICS, EvidenceSource.KUBERNETES)
ANY = (*EXPORTERS, *TOLD)
_TOLERANCES = 0.1, 0.02, 0.05, 0.2
_TARGET_LABELS: Sequence[Mapping[str, str]] = (
    {},
    EXPORTERS_POD,
    {"pod": "dcgm-exporter-x7kqp"},
    {"namespace": "ml"},
    {"namespace": "gpu-operator", "pod_name": "dcgm-exporter-x7kqp"},
)
"""What scrape jobs add, up to both labels that name a pod."""
_OTHER_DEVICES = "rdma/hca_shared", "smarter-devices/fuse"
_RESOURCES = "nvidia.com/gpu", "example.com/accelerator", "npu.example.com/half"


@dataclass(slots=True)
class History:
    """One workload, with its chances."""

    name: str
    evidence: EvidenceSource
    chance: random.Random
    speech: random.Random
    """The same, for how its world speaks."""
    aggregation: Aggregation = Aggregation.SUM
    loop: Loop = field(init=False)
    judge: Judge = field(init=False)
    _work: list[tuple[float, Callable[[float], float]]] = field(default_factory=list)

    def begin(self, work: float, **terms: Any) -> Loop:
        self._work.append((float("-inf"), lambda _: work))
        seed = terms.pop("seed", self.chance.randrange(1, 2**31))
        trigger = replace(terms.pop("trigger", spec()), aggregation=self.aggregation)
        trigger = self._speak(trigger, terms)
        drawn = random.Random(seed)
        # The scaler does not know the HPA's tolerances: it has to be right with any.
        tolerances = Tolerances(up=drawn.choice(_TOLERANCES), down=drawn.choice(_TOLERANCES))
        begin = BEGIN + drawn.randrange(2 * STEP_SECONDS)
        self.loop = Loop(
            self._offered, self.evidence, seed=seed, trigger=trigger, begin=begin, **terms
        )
        self.loop.hpa.tolerances = tolerances
        monitoring = self.loop.monitoring
        list_seconds = drawn.choice((15, 30, 60))
        monitoring.list_scrapes = Scrapes(list_seconds, drawn.randrange(list_seconds))
        monitoring.exporter_scrapes = each_at_its_own_second(drawn.random())
        share, salt = self.speech.choice((0.0, 0.0, 0.4, 1.0)), self.speech.random()
        stuck = [random.Random(f"{salt} {number}").random() < share for number in range(1000)]
        monitoring.average = lambda pod, then: (
            0.0 if stuck[pod.number] and then < pod.refused_since else None
        )
        self.judge = Judge(self.loop, self.chance)
        return self.loop

    def _speak(self, trigger: TriggerSpec, terms: dict[str, Any]) -> TriggerSpec:
        """Return the trigger as it may be, after adding the rest of the dialect to the terms."""
        speech = self.speech
        tenant_shows = speech.choice((None, None, 0.0, 50.0, 100.0))
        terms["dialect"] = Dialect(
            speech.choice(_TARGET_LABELS),
            honor_labels=speech.random() < 0.5,
            gpus=speech.choice((1, 1, 2)),
            resource=speech.choice(_RESOURCES),
            tenant_shows=tenant_shows,
        )
        if speech.random() < 0.25:
            trigger = replace(trigger, for_formula=True)
            terms["formula"] = lambda gpu, _: gpu / trigger.threshold
        is_deployment = trigger.pods.owner == Owner("Deployment", "bert")
        if speech.random() < 0.1 and self.evidence in TOLD and is_deployment:
            terms["owner"] = trigger.pods.owner
            trigger = replace(trigger, pods=spec(workload="bret").pods)
        return trigger

    def work(self, work: float) -> None:
        self.works(lambda _: work)

    def works(self, work: Callable[[float], float]) -> None:
        """Let there be so much work from now on, by the seconds since the loop began."""
        self._work.append((self.loop.clock - self.loop.begin, work))

    async def last(
        self, shortest: float, longest: float | None = None, *, keda: bool = True
    ) -> None:
        """Let time pass, at random between two bounds."""
        seconds = shortest if longest is None else self.chance.uniform(shortest, longest)
        await self.loop.run(max(STEP_SECONDS, seconds // STEP_SECONDS * STEP_SECONDS), keda=keda)

    @property
    def working(self) -> list[SimPod]:
        return [pod for pod in self.loop.pods if pod.works(self.loop.clock)]

    def some(self, pods: list[SimPod], share: float) -> list[SimPod]:
        """Draw a part of the pods, at least one and not all."""
        some = max(1, min(len(pods) - 1, round(share * len(pods))))
        return self.chance.sample(pods, min(len(pods), some))

    def _offered(self, since: float) -> float:
        return next(work for begin, work in reversed(self._work) if begin <= since)(since)


Theme = Callable[[History], Awaitable[None]]


async def lost_nodes(one: History) -> None:
    """Nodes are lost, and the replacements wait for new ones."""
    replicas = one.chance.randint(4, 10)
    loop = one.begin(60.0 * replicas, replicas=replicas)
    await one.last(120, 300)
    loop.node_seconds = one.chance.uniform(120, 420)
    evicted_after = one.chance.choice([0.0, one.chance.uniform(60, 300)])
    loop.lose(*one.some(one.working, one.chance.uniform(0.3, 0.8)), evicted_after=evicted_after)
    await one.last(600, 1200)


async def half_a_rollout(one: History) -> None:
    """Pods are replaced by ones that load for minutes."""
    replicas = one.chance.randint(4, 8)
    loop = one.begin(60.0 * replicas, replicas=replicas)
    await one.last(120, 300)
    loop.start_seconds = one.chance.uniform(200, 500)
    for pod in one.some(one.working, 0.5):
        loop.delete(pod)
    await one.last(600, 900)


async def leaving(one: History) -> None:
    """Replicas are added by hand, and the HPA takes them away without its usual patience."""
    replicas = one.chance.randint(5, 10)
    hpa = Hpa(maximum=20, stabilization_seconds=one.chance.choice([0, 60]))
    trigger = spec(window=one.chance.choice(["2m", "4m"]))
    work = one.chance.uniform(35, 50) * replicas
    loop = one.begin(work, replicas=replicas, start_seconds=30.0, hpa=hpa, trigger=trigger)
    for _ in range(3):
        await one.last(200, 300)
        hpa.minimum = loop.replicas + one.chance.randint(2, 4)
        await one.last(105)
        hpa.minimum = 0
    await one.last(200, 300)


async def unseen(one: History) -> None:
    """Some nodes have no exporter."""
    replicas = one.chance.randint(2, 6)
    dark = one.chance.randint(1, replicas - 1)
    one.begin(60.0 * replicas, replicas=replicas, has_exporter=lambda number: number >= dark)
    await one.last(200, 300)
    one.work(one.chance.uniform(0, 120) * replicas)
    await one.last(300, 600)


async def groups(one: History) -> None:
    """Leaders ask for no GPU, or have an idle one; some of the workers' nodes have no exporter."""
    replicas = one.chance.randint(2, 5)
    dark = one.chance.randint(0, replicas - 1)
    device = one.speech.choice((None, None, *_OTHER_DEVICES))

    def differ(pod: SimPod) -> None:
        if pod.worker and pod.number < dark:
            pod.silent = pod.created
        if device is None:
            pod.part = 2.0 if pod.worker else 0.0
        elif not pod.worker:
            pod.asks, pod.gpu_count = device, 0

    # Beside an idle leader, a group is full at 50.
    threshold = 70 if device else 35
    trigger = spec(workload="lws/bert", threshold=str(threshold))
    work = one.chance.uniform(0.5, 0.65) * threshold * replicas
    one.begin(work, replicas=replicas, group=2, when_created=differ, trigger=trigger)
    await one.last(1000, 1400)
    one.work(one.chance.uniform(0, 3 if device else 1) * work)
    await one.last(300, 600)


async def silent(one: History) -> None:
    """An exporter dies, and the load rises; after a while there may be more replicas."""
    replicas = one.chance.randint(2, 4)
    hpa = Hpa(maximum=replicas)
    loop = one.begin(60.0 * replicas, replicas=replicas, hpa=hpa)
    await one.last(150, 300)
    pod = one.chance.choice(loop.pods)
    if one.chance.random() < 0.5:
        pod.silent = loop.clock
    else:
        pod.refused_since = loop.clock
    await one.last(30, 90)
    one.work(one.chance.uniform(150, 250) * replicas)
    await one.last(400, 500)
    hpa.maximum = 20
    await one.last(200, 400)


async def moving(one: History) -> None:
    """The pod of a StatefulSet returns on another node."""
    replicas = one.chance.randint(2, 4)
    loop = one.begin(
        one.chance.uniform(55, 70) * replicas,
        replicas=replicas,
        start_seconds=one.chance.uniform(45, 75),
        stateful=True,
        trigger=spec(workload="statefulset/bert"),
    )
    for _ in range(2):
        await one.last(200, 300)
        loop.grace_seconds, loop.node_seconds = (
            one.chance.uniform(0, 30),
            one.chance.uniform(0, 200),
        )
        old = one.chance.choice(one.working)
        loop.delete(old)
        if one.chance.random() < 0.5:
            old.unlisted = old.gone + one.chance.uniform(0, 15)
    await one.last(300, 500)


async def climbing(one: History) -> None:
    """Replicas are added that start as long as `warmup`, all of them alike."""
    loading = one.chance.choice([0.0, 100.0])
    one.begin(
        60.0,
        start_seconds=one.chance.uniform(85, 118),
        loading=loading,
        seed=0,
    )
    await one.last(60, 150)
    for work in one.chance.sample([130.0, 200.0, 270.0, 340.0], 2):
        one.work(work)
        await one.last(350, 500)


async def map_of_pods(one: History) -> None:
    """An exporter names no pod any more, while the GPU is busy now and then."""
    loop = one.begin(60.0)
    phase = one.chance.randrange(4)
    one.works(lambda t: 100.0 if (t // COLLECT_SECONDS + phase) % 4 == 0 else 0.0)
    await one.last(300, 450)
    one.working[0].unnamed = (loop.clock + one.chance.randrange(60), NEVER)
    await one.last(900, 1200)


async def last_node(one: History) -> None:
    """The last pod goes, and its node and exporter with it."""
    one.begin(
        60.0,
        grace_seconds=one.chance.uniform(2, 10),
        node_leaves_seconds=one.chance.uniform(0, 6),
    )
    await one.last(60, 200)
    one.work(0.0)
    await one.last(1200, 1800)


async def a_pair(one: History) -> None:
    """One of two Prometheus is down when the last pod goes."""
    loop = one.begin(60.0)
    salt = one.chance.random()
    second = Second(lambda request, at: random.Random(f"{salt} {request} {at}").random() < 0.5)
    loop.monitoring.second = second
    await one.last(30, 60)
    one.work(0.0)
    while loop.replicas:
        await one.last(STEP_SECONDS)
    gone = max(pod.gone for pod in loop.pods)
    second.down = (gone - one.chance.uniform(1, 30), gone + one.chance.uniform(20, 60))
    await one.last(450, 600)


async def late_exporter(one: History) -> None:
    """A new node's exporter is minutes late."""
    loop = one.begin(
        0.0,
        replicas=0,
        start_seconds=one.chance.uniform(30, 100),
        exporter_late_seconds=one.chance.uniform(300, 900),
    )
    await one.last(60, 200)
    one.work(60.0)
    loop.wake()
    await one.last(1000, 1300)


async def woken(one: History) -> None:
    """A demand wakes a workload at zero, at once or after KEDA was paused."""
    loop = one.begin(
        0.0,
        replicas=0,
        start_seconds=one.chance.uniform(30, 100),
        loading=0.0,
        trigger=demanding("sum(waiting)"),
    )
    loop.keda.cooldown_seconds = 30
    for _ in range(2):
        loop.demand = lambda _: 0.0
        await one.last(100, 400)
        loop.demand = lambda _: 1.0
        await one.last(60, 300, keda=False)
        await one.last(200, 400)


async def rolling(one: History) -> None:
    """A rolling update with one extra pod at a time."""
    replicas = one.chance.randint(2, 5)
    start_seconds = one.chance.uniform(30, 80)
    loop = one.begin(60.0 * replicas, replicas=replicas, start_seconds=start_seconds)
    await one.last(150, 300)
    for old in list(one.working):
        loop.surge()
        await one.last(1.2 * start_seconds + 2 * STEP_SECONDS)
        loop.delete(old)
        await one.last(30)
    await one.last(300)


async def away(one: History) -> None:
    """Prometheus does not answer, for minutes."""
    replicas = one.chance.randint(0, 3)
    loop = one.begin(60.0 * replicas, replicas=replicas)
    await one.last(120, 300)
    loop.monitoring.away_until = loop.clock + one.chance.uniform(60, 900)
    await one.last(600, 900)


async def emptied(one: History) -> None:
    """Prometheus comes back without what it had stored."""
    replicas = one.chance.randint(1, 6)
    loop = one.begin(60.0 * replicas, replicas=replicas)
    await one.last(120, 300)
    loop.monitoring.history_since = loop.monitoring.listed_since = loop.clock
    await one.last(500, 700)


async def changing(one: History) -> None:
    """Loads that rise and fall."""
    one.begin(60.0, start_seconds=one.chance.uniform(30, 95))
    for _ in range(4):
        one.work(one.chance.uniform(0, 500))
        await one.last(60, 400)


THEMES: tuple[tuple[Theme, tuple[EvidenceSource, ...]], ...] = (
    (lost_nodes, TOLD),
    (leaving, ANY),
    (moving, EXPORTERS),
    (woken, TOLD),
    (a_pair, EXPORTERS),
    (silent, TOLD),
    (climbing, EXPORTERS),
    (last_node, EXPORTERS),
    (leaving, ANY),
    (map_of_pods, EXPORTERS),
    (unseen, TOLD),
    (a_pair, EXPORTERS),
    (late_exporter, EXPORTERS),
    (woken, TOLD),
    (leaving, TOLD),
    (half_a_rollout, TOLD),
    (rolling, ANY),
    (last_node, EXPORTERS),
    (away, ANY),
    (map_of_pods, EXPORTERS),
    (emptied, ANY),
    (silent, TOLD),
    (changing, ANY),
    (groups, TOLD),
    (moving, EXPORTERS),
    (groups, TOLD),
)
"""What is rare in its history has more than one."""


async def to_zero_and_back(one: History) -> None:
    """The work ends, and comes back with a signal from elsewhere."""
    one.work(0.0)
    await one.last(500, 800)
    if not one.loop.replicas:
        one.loop.wake()
    one.work(one.chance.uniform(20, 70))
    await one.last(300, 500)


async def an_outage(one: History) -> None:
    """Prometheus does not answer."""
    monitoring = one.loop.monitoring
    monitoring.away_until = one.loop.clock + one.chance.uniform(30, 500)
    await one.last(300, 600)


async def another_load(one: History) -> None:
    """The work is another."""
    one.work(one.chance.uniform(0, 400))
    await one.last(300, 600)


AFTER: tuple[Theme, ...] = (to_zero_and_back, an_outage, another_load)


async def history(seed: int, number: int, aggregation: Aggregation = Aggregation.SUM) -> History:
    """Return a history that has ended, with what was judged of it.

    Args:
        seed: of a series of histories.
        number: which of them; each has the next theme.
        aggregation: of the trigger whose answers scale the workload.
    """
    chance = random.Random(f"{seed} {number}")
    theme, evidences = THEMES[number % len(THEMES)]
    speech = random.Random(f"the speech of {seed} {number}")
    one = History(theme.__name__, chance.choice(evidences), chance, speech, aggregation)
    await theme(one)
    for after in chance.sample(AFTER, chance.randint(0, 1)):
        await after(one)
    return one
