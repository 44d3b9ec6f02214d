"""What is wanted of one snapshot lately: the needs of everybody who asks, as one."""

from collections.abc import Callable

from keda_gpu_scaler import condition, observation
from keda_gpu_scaler.observation import Need
from keda_gpu_scaler.spec import TriggerSpec

FORGET_SECONDS = 600.0
"""Namespaces and spans nobody asked about for this long are no longer fetched."""


class Needs:
    """Remembers who asked for what, and when he did last."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Know of nobody yet.

        Args:
            clock: seconds that never go back.
        """
        self._clock = clock
        self._asked: dict[Need, float] = {}

    def note(self, need: Need) -> None:
        """Remember that somebody asks for this now."""
        self._asked[need] = self._clock()

    @property
    def are_forgotten(self) -> bool:
        """Whether nobody has asked for anything lately."""
        return all(when < self._since for when in self._asked.values())

    def together(self) -> Need:
        """Return the one that covers everything asked for lately, of which there is some."""
        self._asked = {need: when for need, when in self._asked.items() if when >= self._since}
        return observation.merged(self._asked)

    @property
    def _since(self) -> float:
        return self._clock() - FORGET_SECONDS


def of(spec: TriggerSpec, step_seconds: float) -> Need:
    """Return what one trigger wants of its source, which has something new once per step."""
    window = spec.window_seconds if spec.window_seconds is not None else condition.WINDOW_SECONDS
    reach = max(window + spec.warmup_seconds, spec.activation_window_seconds, spec.max_age_seconds)
    return Need(
        spec.shared_signal,
        spec.profile,
        frozenset({spec.pods.namespace}),
        span_seconds=reach + step_seconds,
        window_seconds=max(window, spec.activation_window_seconds),
        query=spec.query,
    )
