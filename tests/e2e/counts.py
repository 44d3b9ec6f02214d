"""What a program counts of its own work, from its metrics page."""

from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

_ERRORS = ("keda_scaled_object_errors_total", "keda_scaler_detail_errors_total")


@dataclass(frozen=True, slots=True)
class Counts:
    """The counters of one program."""

    url: str

    async def total(self, *metrics: str, **labels: str) -> float:
        """Return the sum of these metrics over all series with these labels."""
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            page = (await client.get(self.url)).raise_for_status().text
        return sum(
            sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name in metrics and labels.items() <= sample.labels.items()
        )

    async def errors(self, namespace: str, scaled_object: str) -> float:
        """Return how many errors a KEDA has counted for a ScaledObject and its scalers."""
        return await self.total(*_ERRORS, namespace=namespace, scaledObject=scaled_object)
