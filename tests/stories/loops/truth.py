"""What is true of a loop, and the promises that every answer about it is held to.

The truth is taken from the pods and the work of the loop, and never from the scaler.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from keda_gpu_scaler.autoscaling.rules import Metric, Scale, recommend
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.load import FULL_GROWTH, FULL_LOAD
from keda_gpu_scaler.decision.pod_state import FULL
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import Aggregation
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop
from testbed.loops.pods import SimPod

RAISING = Aggregation.MAX, Aggregation.P95
SPREAD = 0.06
"""How far what pods show may be from their share of the work."""
REACH_SECONDS = 300
"""Longer than samples reach back, and a scrape and an exporter's delay more."""
LINGERS_SECONDS = 120
"""A grace period, a minute, and the time until what others do is seen."""
REST_SECONDS = 75
"""The HPA is silent for a minute then, and a step."""
OLD_SECONDS = 45
"""How old the newest sample of an answer can be: it is of the instant before, and of the last
scrape before that."""
DOUBT_SECONDS = 60
"""How long a metric is 0 beside work before it is known to be stuck: one and a half collections,
and a scrape."""
SEEN_SECONDS = 45
"""How old a load is until it has been collected, scraped and listed."""


@dataclass(frozen=True, slots=True)
class Truth:
    """A loop at one time."""

    loop: Loop

    @property
    def now(self) -> float:
        return self.loop.clock

    @property
    def has_pods(self) -> bool:
        return any(pod.exists(self.now) for pod in self.loop.pods)

    @property
    def is_told(self) -> bool:
        """Whether the cluster says which pods there are."""
        return self.loop.evidence is not EvidenceSource.EXPORTERS

    @property
    def is_at_rest(self) -> bool:
        """Whether there are no pods, and the HPA has not asked about any for a minute."""
        wanted = max(
            self.loop.wanted(self.now - ago) for ago in range(0, REST_SECONDS, STEP_SECONDS)
        )
        return not wanted and not self.has_pods

    def left(self, within_seconds: float = REACH_SECONDS) -> list[SimPod]:
        """Return the pods that have left, by default for as long as samples reach back."""
        since = self.now - within_seconds
        return [pod for pod in self.loop.pods if since < pod.deleted <= self.now]

    @property
    def is_whole(self) -> bool:
        """Whether as many replicas as are wanted have worked for as long as samples reach back.

        Each on a node with an exporter: by exporters alone nothing else is known.
        """
        return all(
            sum(pod.is_replica and _is_known(pod, self.now - ago) for pod in self.loop.pods)
            == self.loop.replicas
            for ago in range(0, REACH_SECONDS, STEP_SECONDS)
        )

    @property
    def is_busy(self) -> bool:
        """Whether a pod that works was above activationThreshold within activationWindow.

        All of its samples count, and Prometheus had the time to scrape its exporter.
        """
        return self._is_busy()

    @property
    def has_load(self) -> bool:
        """The same where it is known by how much."""
        averages = (self.loop.monitoring.average(pod, self.now) for pod in self.loop.pods)
        return self._is_busy(DOUBT_SECONDS if any(a is not None for a in averages) else 0)

    @property
    def wanted_lately(self) -> list[int]:
        """How many replicas were wanted in the time that the newest list can be about.

        The scaler reads it at the step after the list.
        """
        late = self.loop.monitoring.list_scrapes.every_seconds + STEP_SECONDS
        return [self.loop.wanted(self.now - ago) for ago in range(0, late, STEP_SECONDS)]

    def _is_busy(self, doubt_seconds: float = 0) -> bool:
        trigger = self.loop.trigger
        window, level = trigger.activation_window_seconds, trigger.activation_threshold
        young = window if self.is_told else window + trigger.warmup_seconds
        return any(
            value > level
            for pod in self.loop.pods
            if pod.works(self.now) and pod.ready < self.now - young
            for time, value in pod.shown.items()
            if self.now - window + STEP_SECONDS < time < self.now - OLD_SECONDS - doubt_seconds
        )

    @property
    def least_needed(self) -> int:
        """How many replicas the work has needed at least, as the HPA reckons from the present."""
        return self._needed(min(self._works()) * (1 - self._spread))

    @property
    def most_needed(self) -> int:
        return self._needed(max(self._works()) * (1 + self._spread))

    @property
    def most_of_full(self) -> int:
        """How many replicas full ones may ask for: they may have more work than they show."""
        work = max(self._works()) * (1 + self._spread)
        full = min(self.loop.replicas, int(work / FULL))
        threshold = self.loop.trigger.threshold
        return math.ceil(full * max(FULL_LOAD * 100 / threshold, FULL_GROWTH))

    @property
    def are_full(self) -> bool:
        """Whether all replicas have had more work than they can do, on nodes with exporters."""
        shows = all(pod.silent > pod.created for pod in self.loop.pods)
        is_full = min(self._works()) >= 100 * self.loop.replicas > 0
        return is_full and shows and self.is_whole

    def asked(self, decided: Decision) -> int:
        """Return how many replicas an answer asks for; as many as there are if it holds."""
        if decided.value is None:
            return self.loop.replicas
        return self._needed(decided.value)

    @property
    def _spread(self) -> float:
        return SPREAD if self.loop.seed else 0.0

    def _works(self) -> list[float]:
        since = self.now - self.loop.begin
        return [
            self.loop.offered(since - ago)
            for ago in range(0, REACH_SECONDS + SEEN_SECONDS, STEP_SECONDS)
        ]

    def _needed(self, work: float) -> int:
        metric = Metric(value=work, target=self.loop.trigger.threshold)
        step = recommend([metric], Scale.steady(self.loop.replicas), self.loop.hpa.tolerances)
        assert step is not None
        return step.replicas


def _is_known(pod: SimPod, now: float) -> bool:
    return pod.works(now) and pod.exporter_since <= now


def broken(truth: Truth, decided: Decision, age_seconds: float) -> Iterator[str]:
    """Yield each promise that an answer breaks.

    Args:
        truth: what is so.
        decided: the answer.
        age_seconds: how long ago the scaler started, for what docs/limits.md says of a restart.
    """
    yield from _of_form(decided)
    yield from _of_activity(truth, decided, age_seconds)
    yield from _of_replicas(truth, decided)
    yield from _of_trigger(truth.loop, decided)


def _of_form(decided: Decision) -> Iterator[str]:
    numbers = [one for one in (decided.value, decided.average) if one is not None]
    if not all(math.isfinite(one) and one >= 0 for one in numbers):
        yield "a number is not finite, or negative"
    if not is_sentence(decided.reason):
        yield "the reason is not one sentence"
    if decided.state is State.UNKNOWN and decided.value is not None:
        yield "an unknown load is answered with a number"
    if decided.value == 0 and decided.active and decided.state is not State.MEASURED:
        yield "a workload in use is answered with a 0 that nobody measured"


def _of_activity(truth: Truth, decided: Decision, age_seconds: float) -> Iterator[str]:
    if truth.is_busy and decided.active is False:
        yield "a busy workload is answered inactive"
    if truth.has_load and decided.value == 0:
        yield "a busy workload is answered with 0"
    is_waking = decided.active and not decided.activated
    if truth.is_at_rest and is_waking and math.isinf(age_seconds):  # it heard the HPA stop
        yield "a workload without replicas is answered active"


def _of_replicas(truth: Truth, decided: Decision) -> Iterator[str]:
    loop, is_told, asked = truth.loop, truth.is_told, truth.asked(decided)
    least = min(*truth.wanted_lately, loop.replicas, truth.least_needed)
    if (is_told or truth.is_whole) and asked < least:
        yield f"{truth.least_needed} replicas are needed, and fewer are asked for"
    is_alike = loop.stateful or not loop.seed
    slack = len(decided.unseen) if is_told else 0 if is_alike else 1
    # By exporters alone one that drains counts, and its last load for a minute more. The others did
    # its work while it moved, which their means show: with max and p95 that counts for each.
    drains = not is_told and truth.left(LINGERS_SECONDS if loop.stateful else REACH_SECONDS)
    differs = not is_told and loop.trigger.aggregation in RAISING
    if not (drains or differs) and asked > max(
        loop.replicas, truth.most_needed + slack, truth.most_of_full
    ):
        yield f"{truth.most_needed} replicas are enough, and more are asked for"
    is_known = is_told and decided.state is not State.UNKNOWN
    if is_known and truth.are_full and asked <= loop.replicas:
        yield "all replicas are full, and no more are asked for"


def _of_trigger(loop: Loop, decided: Decision) -> Iterator[str]:
    formula = loop.formula if loop.trigger.for_formula else None
    if formula and loop.polled(formula, decided) is not loop.is_active(decided):
        yield "the formula of a poll says otherwise than IsActive"
    takes = decided.value is not None or (loop.replicas and decided.active is False)
    if loop.owner is not None and takes:
        yield "a trigger that names no workload does not hold the replicas"


def is_sentence(reason: str) -> bool:
    """Tell whether a reason is one sentence: without a full stop, a line's end, or space around."""
    is_trimmed = bool(reason) and reason == reason.strip() and reason.isprintable()
    return is_trimmed and ". " not in reason and not reason.endswith(".")
