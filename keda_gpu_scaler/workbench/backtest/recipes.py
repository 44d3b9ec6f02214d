"""What the scaler is compared with: KEDA's own prometheus trigger, with a query that people write.

Pure.

The trigger has KEDA's defaults: an empty answer is 0 (`ignoreNullValues`), and anything above 0 is
active.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from keda_gpu_scaler.autoscaling.rules import MetricType
from keda_gpu_scaler.decision.decision import Decision, State


@dataclass(frozen=True, slots=True)
class Recipe:
    """A query over the GPUs of all pods that are named alike, and how the HPA reads it."""

    aggregate: Callable[[Sequence[float]], float]
    metric_type: MetricType

    def decided(self, shown: Sequence[float]) -> Decision:
        """Return KEDA's answer for what exporters show now."""
        value = self.aggregate(shown) if shown else 0.0
        return Decision(
            state=State.MEASURED, reason=f"the query gives {value}", value=value, active=value > 0
        )


SUM = Recipe(sum, MetricType.AVERAGE_VALUE)
AVERAGE_AS_VALUE = Recipe(mean, MetricType.VALUE)
AVERAGE = Recipe(mean, MetricType.AVERAGE_VALUE)
"""What most guides have: it stays at few replicas, whatever the load."""
RECIPES: Mapping[str, Recipe] = {
    "sum()": SUM,
    "avg() with Value": AVERAGE_AS_VALUE,
    "avg()": AVERAGE,
}
