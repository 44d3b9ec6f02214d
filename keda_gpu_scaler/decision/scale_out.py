"""Whether more replicas helped: after a scale-out, did the demand or the load of a replica fall?

Pure. If neither fell, and the demand did not rise, something else holds the work up. Under a demand
that rises, every scale-out looks futile, so nothing is said of it; nor without a demand, as the
load alone shows both alike. It is for people: no answer rests on it.
"""

from dataclasses import dataclass
from typing import NamedTuple

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import Demand
from keda_gpu_scaler.times import SETTLE_SECONDS

_ALIKE = 0.1
"""Changes up to this part are none: one more of five replicas takes a sixth off the others."""


class Moment(NamedTuple):
    """What is known of a workload at one time."""

    at: float
    replicas: int
    """Those with a known load."""
    load: float
    """Of a replica, on average."""
    demand: float


@dataclass(slots=True)
class ScaleOuts:
    """The scale-outs of one workload, of which the last is judged."""

    _before: Moment | None = None
    """The last moment before a scale-out that is not judged yet."""
    _last: Moment | None = None
    _grown_at: float = 0.0
    _futile: str = ""

    def judge(self, moment: Moment | None) -> str:
        """Return which scale-out did not help, as a sentence; empty: none, as far as it is known.

        It stands until the number of replicas changes again. None: nothing is known now.
        """
        if moment is None:
            return self._futile
        last, self._last = self._last, moment
        if last is None or moment.at - last.at > SETTLE_SECONDS or moment.replicas < last.replicas:
            self._before, self._futile = None, ""
        elif moment.replicas > last.replicas:
            self._before, self._grown_at, self._futile = self._before or last, moment.at, ""
        elif self._before is not None and moment.at - self._grown_at >= SETTLE_SECONDS:
            self._futile = _futile(self._before, moment)
            self._before = None
        return self._futile


def _futile(before: Moment, after: Moment) -> str:
    least, most = (1 - _ALIKE) * before.demand, (1 + _ALIKE) * before.demand
    is_alike = 0 < least <= after.demand <= most
    if not is_alike or after.load < (1 - _ALIKE) * before.load or not before.load:
        return ""
    waited = durations.text(SETTLE_SECONDS)
    return (
        f"{after.replicas} replicas instead of {before.replicas} did not help: {waited} later the "
        f"demand is {after.demand:.6g} (it was {before.demand:.6g}) and the load of a replica "
        f"{after.load:.3g} (it was {before.load:.3g})"
    )


def moment_of(at: float, decided: Decision, demand: Demand) -> Moment | None:
    """Return the moment of a decision by the GPUs; None: not all of their loads are known."""
    if decided.state is not State.MEASURED or decided.average is None or demand.value is None:
        return None
    return Moment(at, decided.measured, decided.average, demand.value)
