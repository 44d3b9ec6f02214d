"""The health of scrape targets: unbroken runs of good scrapes, and what absence in a run means.

Pure. All times are the source's own.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace

from keda_gpu_scaler.snapshot.observation import Observation, Target
from keda_gpu_scaler.times import LEAST_GRACE_SECONDS

UpIntervals = Mapping[float, float]
"""For each newly observed instant at which a target was good: when that unbroken run began."""


def grace_seconds(scrape_interval_seconds: float) -> float:
    """Return how long silence, a gap, or the time after a gap lasts before it is acted on."""
    return max(LEAST_GRACE_SECONDS, 2 * scrape_interval_seconds)


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """What is known of one target."""

    good_since: float
    """When its current or last unbroken run of good scrapes began."""
    last_good: float
    returned_at: float | None = None
    """The same, if it had been good before that run: series that begin then have only come back."""
    interval_seconds: float = 0.0
    """How often it is scraped, as observed; 0 when not known yet."""


def advance_targets(
    known: Mapping[Target, TargetHealth], known_at: float, observation: Observation
) -> tuple[dict[Target, UpIntervals], dict[Target, TargetHealth]]:
    """Return each target's new runs, and the health of every target that was ever good.

    `known` holds up to `known_at`.
    """
    up_intervals: dict[Target, UpIntervals] = {}
    states, instants = dict(known), observation.instants
    is_seamless = known_at >= instants[0]
    new = [instant for instant in instants if instant > known_at]
    for target, scrapes in observation.good_scrapes.items():
        runs, state = dict[float, float](), known.get(target)
        was_good = is_seamless and state is not None and state.last_good == known_at
        for instant in new:
            if instant in scrapes:
                if state is None:
                    state = TargetHealth(instant, instant)
                elif not was_good:
                    state = replace(state, good_since=instant, returned_at=instant)
                state = replace(state, last_good=instant)
                runs[instant] = state.good_since
            was_good = instant in scrapes
        up_intervals[target] = runs
        if state is not None:
            # With too few scrapes the known interval stays.
            gaps = map(operator.sub, (times := sorted(set(scrapes.values())))[1:], times)
            interval = min(gaps, default=state.interval_seconds)
            states[target] = replace(state, interval_seconds=interval)
    return up_intervals, states


def absent_from_good_scrape(
    up_intervals: UpIntervals, last_seen: float, settle_seconds: float
) -> bool:
    """Tell whether a good scrape after `last_seen` proves that the pod is gone.

    Within the run in which it was seen, at once; in a later run only after the settling time.
    """
    return any(
        instant > last_seen and (start <= last_seen or instant - start >= settle_seconds)
        for instant, start in up_intervals.items()
    )
