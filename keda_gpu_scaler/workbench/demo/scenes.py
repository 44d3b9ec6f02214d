"""The scenes: one workload twice, under this scaler and under a recipe of others, in one world.

Pure. A scene says what happens; the pods, KEDA and the HPA are those of the made-up world, and a
recipe is KEDA's prometheus trigger with its defaults: an empty answer is 0, and at 0 it is idle.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from statistics import mean
from typing import Literal

from keda_gpu_scaler.autoscaling.rules import Metric, Scale, recommend
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.workbench.world.cluster import pod_name
from keda_gpu_scaler.workbench.world.loop import NEVER, STEP_SECONDS, ClosedLoop, SimulatedReplica

BERT = ScaledObject("demo", "bert")
THRESHOLD = 70
PATTERN = "bert-.*"
"""How the recipe finds the pods: `sum(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"})`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoScene:
    """What happens: one number changes."""

    headline: str
    recipe: str = "sum()"
    """The recipe's name."""
    cause: Literal["load", "exporter", "canary", "queue"]
    """What changes: the load in percent of a GPU, how many exporters answer, of which one shows all
    pods, the load of the pod of bert-canary, or the requests that wait, by their newest sample."""
    unit: str
    numbers: Mapping[float, float]
    """From each time on, in seconds since the scene began."""
    load: float = 0
    """In percent of a GPU, where it does not change."""
    loading: float = 0
    """What a GPU shows until its pod is Ready, in percent."""
    replicas: int
    """At the begin; Ready for an hour."""
    seconds: int
    tick_seconds: int = STEP_SECONDS

    @property
    def names(self) -> tuple[str, str]:
        return "this scaler", self.recipe

    @property
    def ticks(self) -> int:
        return self.seconds // self.tick_seconds + 1

    def number(self, seconds: float) -> float:
        """Return what changes as it is at a time; before the scene as at its begin."""
        return [number for since, number in self.numbers.items() if since <= max(0, seconds)][-1]


SCENES = (
    DemoScene(
        headline="The load rises from 40 % to 430 % of a GPU, and each GPU shows 100 % while its "
        "pod loads the model.",
        cause="load",
        unit="% of a GPU",
        numbers={0: 40, 60: 430},
        replicas=1,
        loading=100,
        seconds=570,
    ),
    DemoScene(
        headline="The exporter that shows the GPUs of three busy pods does not answer for ten "
        "minutes.",
        cause="exporter",
        unit="answering",
        load=190,
        replicas=3,
        numbers={0: 1, 120: 0, 720: 1},
        seconds=840,
    ),
    DemoScene(
        headline="Another workload gets busy: bert-canary, whose pods match the pattern bert-.* "
        "too.",
        cause="canary",
        unit="% of its GPU",
        load=45,
        replicas=1,
        numbers={0: 5, 120: 100},
        seconds=360,
    ),
    DemoScene(
        headline="A request waits for a workload at zero: external-push of this scaler, and KEDA's "
        "prometheus trigger.",
        recipe="prometheus",
        cause="queue",
        unit="waiting",
        replicas=0,
        numbers={0: 0, 12: 1},
        seconds=32,
        tick_seconds=1,
    ),
)


@dataclass(slots=True)
class DemoPod(SimulatedReplica):
    """A pod of one of two Deployments."""

    workload: str = "bert"

    @property
    def name(self) -> str:
        return pod_name(self.workload, self.number)


@dataclass(slots=True)
class Side(ClosedLoop[DemoPod]):
    """The workload under one scaler, and beside it the pod of bert-canary in its scene."""

    offered: Callable[[float], float] = field(init=False)
    _: KW_ONLY
    scene: DemoScene
    canaries: list[DemoPod] = field(default_factory=list, init=False)
    seen: int = field(default=0, init=False)
    """How many replicas or GPUs the last number was made of."""
    arithmetic: str = field(default="", init=False)
    """Why there are so many replicas after the last step."""
    reason: str = field(default="", init=False)
    """The scaler's own sentence about its last answer."""
    woken_seconds: float = field(default=NEVER, init=False)
    """How long after the request the first replica was created."""

    def __post_init__(self) -> None:
        """Begin with pods that have been Ready for an hour."""
        scene = self.scene
        self.offered = scene.number if scene.cause == "load" else lambda _seconds: scene.load
        self.loading, self.replicas = scene.loading, scene.replicas
        ClosedLoop.__post_init__(self)
        self.keda.last_active = self.begin
        if scene.cause == "canary":
            early = self.begin - 7200
            self.canaries.append(DemoPod(0, early, early, early, 0, workload="bert-canary"))
        self._settle()

    @property
    def seconds(self) -> float:
        """How long the scene has lasted."""
        return self.clock - self.begin

    @property
    def every_pod(self) -> list[DemoPod]:
        return [*self.pods, *self.canaries]

    def number(self, cause: str, now: float, usual: float) -> float:
        """Return a number that changes in one of the scenes; in others it is as usual."""
        return self.scene.number(now - self.begin) if self.scene.cause == cause else usual

    def value(self, pod: DemoPod, now: float) -> float | None:
        """Return what a scrape shows of a pod's GPU; None: the pod is gone, or nothing answers."""
        is_shown = now < pod.gone and self.number("exporter", now, 1)
        return pod.exported(now) if is_shown else None

    def matched(self) -> list[float]:
        """Return what the recipe's query selects now."""
        if self.scene.cause == "queue":
            return [self.scene.number(self.seconds)]
        scraped_at = self.clock // STEP_SECONDS * STEP_SECONDS
        pods = [pod for pod in self.every_pod if re.fullmatch(PATTERN, pod.name)]
        values = [self.value(pod, scraped_at) for pod in pods]
        return [value for value in values if value is not None]

    def advance(self, seconds: float) -> None:
        """Let exporters read their GPUs meanwhile."""
        self._collect(self.clock, self.clock + seconds)
        self.clock += seconds

    def act(self, metric: Metric, active: bool | None, seen: int, made_of: str) -> None:  # noqa: FBT001 - as IsActive returns it
        """Let the HPA sync, and KEDA if it polls now; `made_of` says what the metric is made of."""
        needed = recommend([metric], Scale.steady(self.replicas))
        needs = "" if needed is None else f", needs {needed.replicas} at {metric.target:g} %"
        self.seen, self.arithmetic = seen, f"{made_of}{needs}"
        self._scale(active=active, metrics=[metric], polls=True)

    def push(self) -> None:
        """Take a push, as KEDA does."""
        self.resize(self.keda.poll(self.clock, self.replicas, [True]))

    def note(self) -> None:
        """Note what there is at the end of a tick."""
        self.sizes.append(self.replicas)
        if self.scene.cause == "queue":
            waited = max(0, self.seconds - max(self.scene.numbers))
            self.arithmetic = f"the request has waited for {waited:.0f} s" if waited else ""
            if self.replicas:
                self.woken_seconds = min(self.woken_seconds, waited)
                self.arithmetic = f"woken {self.woken_seconds:.0f} s after the request"

    def _create(self, created: float) -> None:
        self.pods.append(DemoPod(len(self.pods), created, *self._times(created), self.loading))

    def _read(self, now: int, working: Sequence[DemoPod]) -> None:
        super(Side, self)._read(now, working)
        for pod in self.canaries:
            pod.collect(now, self.scene.number(now - self.begin))


Sides = tuple[Side, Side]
"""The workload under this scaler, and under the recipe."""


def of_scaler(told: Summary) -> str:
    """Say what the scaler's answer is made of."""
    if told.value is None or told.average is None:
        return f"{told.measured} of {told.replicas} replicas measured, keeps what there is"
    counted = math.isclose(told.measured * told.average, told.value, abs_tol=0.5)
    replicas = f"{told.measured} replica{'s' * (told.measured != 1)} at {told.average:.0f} %"
    return f"{replicas}{' =' if counted else ', counted as'} {told.value:.0f} %"


def of_recipe(values: Sequence[float]) -> str:
    """Say what the recipe's sum is made of."""
    if not values:
        return "no GPU is shown: an empty answer is 0"
    gpus = f"{len(values)} GPU{'s' * (len(values) != 1)}"
    return f"{gpus} at {mean(values):.0f} % = {sum(values):.0f} %"


def summary(climb: Sides, outage: Sides, canary: Sides, wake: Sides) -> str:
    """Say in three sentences how the scenes ended."""
    needed = math.ceil(max(climb[0].scene.numbers.values()) / THRESHOLD)
    most, least, beside = (
        [pick(side.sizes) for side in sides]
        for pick, sides in ((max, climb), (min, outage), (max, canary))
    )
    push, poll = (f"{side.woken_seconds:.0f} s" for side in wake)
    return (
        f"A load that needs {needed} replicas took this scaler to {most[0]} and sum() to "
        f"{most[1]}, because a model that loads counts as work there. While the exporter did not "
        f"answer, this scaler kept {least[0]} replicas and sum() {least[1]}; while bert-canary was "
        f"busy, it kept bert at {beside[0]}, and sum() took it to {beside[1]}. A request woke the "
        f"workload after {push} by external-push, and after {poll} by KEDA's prometheus trigger."
    )
