"""What KEDA counts of its own work, from its operator's metrics page."""

from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

_ERRORS = ("keda_scaled_object_errors_total", "keda_scaler_detail_errors_total")


@dataclass(frozen=True, slots=True)
class Counts:
    """The counters of one KEDA."""

    url: str

    async def errors(self, namespace: str, scaled_object: str) -> float:
        """Return how many errors it has counted for a ScaledObject and its scalers."""
        async with httpx.AsyncClient(trust_env=False) as client:
            page = (await client.get(self.url)).raise_for_status().text
        whose = {"namespace": namespace, "scaledObject": scaled_object}
        return sum(
            sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name in _ERRORS and whose.items() <= sample.labels.items()
        )
