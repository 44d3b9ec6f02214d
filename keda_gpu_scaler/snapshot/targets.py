"""The health of scrape targets: unbroken runs of good scrapes, and what absence in a run means.

Pure. All times are the source's own.
"""

import itertools
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
    known: Mapping[Target, TargetHealth], known_at: float | None, observation: Observation
) -> tuple[dict[Target, UpIntervals], dict[Target, TargetHealth]]:
    """Return each target's new runs, and the health of every target that was ever good.

    `known` holds up to `known_at`, which is None at the very first observation.
    """
    up_intervals: dict[Target, UpIntervals] = {}
    states = dict(known)
    for target, scrapes in observation.good_scrapes.items():
        up_intervals[target], state = _advance_target(
            known.get(target), known_at, observation, scrapes
        )
        if state is not None:
            # With too few scrapes the known interval stays.
            scraped_at = sorted(set(scrapes.values()))
            gaps = [later - earlier for earlier, later in itertools.pairwise(scraped_at)]
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


def _advance_target(
    state: TargetHealth | None,
    known_at: float | None,
    observation: Observation,
    scrapes: Mapping[float, float],
) -> tuple[dict[float, float], TargetHealth | None]:
    up_intervals: dict[float, float] = {}
    seamless = known_at is not None and known_at >= observation.instants[0]
    was_good = seamless and state is not None and state.last_good == known_at
    for instant in observation.instants:
        if known_at is not None and instant <= known_at:
            continue
        if instant in scrapes:
            if state is None:
                state = TargetHealth(instant, instant)
            elif was_good:
                state = replace(state, last_good=instant)
            else:
                state = replace(state, good_since=instant, last_good=instant, returned_at=instant)
            up_intervals[instant] = state.good_since
        was_good = instant in scrapes
    return up_intervals, state
