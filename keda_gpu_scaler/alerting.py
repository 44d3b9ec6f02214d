"""The port to whoever is told of alerts: which ScaledObjects they keep active."""

import contextlib
from collections.abc import Callable
from typing import Protocol

from keda_gpu_scaler.spec import ScaledObject


class Alerting(Protocol):
    """Knows which alerts fire for a ScaledObject."""

    def firing(self, scaled_object: ScaledObject) -> str | None:
        """Return the name of an alert that fires for it now; None: none does."""

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Have `call` called whenever an alert for it begins or ends, while the context lasts."""


class NoAlerts:
    """Nobody tells of alerts."""

    def firing(self, _scaled_object: ScaledObject) -> str | None:
        """Return that none fires."""

    def listen(
        self, _scaled_object: ScaledObject, _call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Call nobody."""
        return contextlib.nullcontext()
