"""The instants at which a Prometheus is asked, as it aligns them itself. Pure."""


def within(at: float, span_seconds: float, step: float) -> tuple[float, ...]:
    """Return the multiples of the step in (at - span, at]: how Prometheus aligns a subquery.

    In whole milliseconds, so that they equal the times in its answers to the last digit.
    """
    last, step_ms = milliseconds(at), milliseconds(step)
    first = (last - milliseconds(span_seconds)) // step_ms + 1
    return tuple(number * step_ms / 1000 for number in range(first, last // step_ms + 1))


def milliseconds(seconds: float) -> int:
    """Return a time as servers count it."""
    return round(seconds * 1000)
