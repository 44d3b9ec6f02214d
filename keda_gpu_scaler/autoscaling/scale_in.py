"""When an HPA is about to scale in, by what it shows; and whose a pod's deletion cost is. Pure.

The ReplicaSet controller takes pods that are not Ready first, then those of the lowest cost
(`controller_utils.go`, `ActivePodsWithRanks`). A pod without a cost counts as one of 0.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, repeat

from keda_gpu_scaler.autoscaling.api_objects import ROUNDING, HpaMetric, HpaObject
from keda_gpu_scaler.autoscaling.rules import CLUSTERS, Hpa, Metric, MetricType, Scale, Tolerances

COST = "controller.kubernetes.io/pod-deletion-cost"
MARK = "keda-gpu-scaler/deletion-cost"
"""Repeats the cost on pods whose cost is this program's; a cost that differs is someone else's."""


class Forecast:
    """Follows one HPA by its status, which shows its metrics but none of its memory."""

    def __init__(self) -> None:
        self._hpa = Hpa()
        self.replicas = 0
        """What it had set when it was last followed."""

    def follow(self, hpa: HpaObject, now: float, ahead_seconds: float) -> int:
        """Return the fewest replicas that it may set within some seconds.

        For a whole stabilization window after the first call that is not known, and no scale-in is
        expected.
        """
        spec, status, behavior = hpa.spec, hpa.status, hpa.spec.behavior
        before, self.replicas = self.replicas, status.desired_replicas
        self._hpa.minimum, self._hpa.maximum = spec.min_replicas, spec.max_replicas
        self._hpa.behavior = behavior
        self._hpa.tolerances = CLUSTERS if behavior is None else Tolerances.of(behavior)
        existing = status.current_replicas  # those that the metrics are averages of
        scale = Scale(spec=self.replicas, status=existing, ready=existing)
        return self._hpa.follow(now, before, scale, list(_metrics(hpa)), ahead_seconds)


def _metrics(hpa: HpaObject) -> Iterator[Metric]:
    """Yield the metrics of its last sync; those that are not external have no value here."""
    shown = chain(hpa.status.current_metrics or (), repeat(HpaMetric()))
    conditions = {condition.type: condition.status for condition in hpa.status.conditions or ()}
    for metric, current in zip(hpa.spec.metrics or (), shown, strict=False):
        target, value = metric.external.target, current.external.current.number
        is_average = target.average_value is not None
        if conditions.get("ScalingActive") != "True":
            value = None
        elif value is not None and is_average:
            value = max(value - ROUNDING, 0.0) * hpa.status.current_replicas
        metric_type = MetricType.AVERAGE_VALUE if is_average else MetricType.VALUE
        yield Metric(value=value, target=target.number or 0.0, metric_type=metric_type)


def kept(costs: Mapping[str, int], fresh: Mapping[str, int], going: int) -> dict[str, int]:
    """Return the costs of pods while a scale-in of so many is waited for, the lowest first.

    Those that are written stay, so that few are written. A pod whose load is not known any more has
    none; nor has one of those that would go, if another pod has become less busy: that one takes
    its cost. `fresh` are the costs by the newest samples.
    """
    costs = {pod: cost for pod, cost in costs.items() if pod in fresh}
    planned, least_busy = list(costs)[:going], list(fresh)[:going]
    busy = sorted((pod for pod in planned if pod not in least_busy), key=lambda pod: -fresh[pod])
    idle = (pod for pod in least_busy if pod not in planned)
    for leaves, comes in zip(busy, idle, strict=False):
        if fresh[comes] < fresh[leaves]:
            costs[comes] = costs.pop(leaves)
    return dict(sorted(costs.items(), key=lambda item: item[1]))


def change(cost: str | None, mark: str | None, wanted: int | None) -> dict[str, str | None]:
    """Return the annotations of a pod to write, None to remove one; {}: it stays as it is.

    `cost` and `mark` are those that it has, `wanted` is the cost that it should have, None: none of
    this program's. A cost that someone else has written stays.
    """
    if cost not in {None, mark}:
        return {} if mark is None else {MARK: None}
    written = None if wanted is None else str(wanted)
    if (cost, mark) == (written, written):
        return {}
    return {COST: written, MARK: written}
