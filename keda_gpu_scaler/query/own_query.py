"""Custom PromQL: the query texts for its points, their targets and ages. Pure."""

from collections.abc import Iterable

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql_texts import STALE_SECONDS, good_scrapes_text, marked
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import OwnQuery

ORIGIN_LABEL = "origin"
"""Keeps apart what the selectors of a query say of one pod."""


def elements_text(own: OwnQuery, span_seconds: float, step_seconds: float) -> str:
    """Return the query for the points of every element, one per step."""
    span, step = durations.text(span_seconds), durations.text(step_seconds)
    # The line break ends a comment at the end of the user's text.
    return f"({own.text}\n)[{span}:{step}]"


def element_targets_text(jobs: Iterable[str], span_seconds: float, step_seconds: float) -> str:
    """Return the query for the good scrapes of the elements' targets."""
    span, step = durations.text(span_seconds), durations.text(step_seconds)
    return f"({good_scrapes_text(jobs)})[{span}:{step}]"


def element_ages_text(own: OwnQuery, step_seconds: float) -> str:
    """Return the query for the ages of the samples behind the numbers, where they are not fresh.

    An average over ten minutes goes on for ten minutes after its samples have ended, and looks
    fresh all the time. So the times are read from the samples, not from the result.
    """
    newest_times = []
    labels = ", ".join((*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS))
    for number, origin in enumerate(own.origins):
        times = f"timestamp({origin.selector})"
        if origin.lookback_seconds:
            # One step longer than the lookback, so that it contains at least one instant.
            span = durations.text(origin.lookback_seconds + step_seconds)
            times = f"max_over_time({times}[{span}:{durations.text(step_seconds)}])"
        newest_times.append(marked(f"max by ({labels}) ({times})", ORIGIN_LABEL, str(number)))
    return f"time() - ({' or '.join(newest_times)}) > {STALE_SECONDS}"
