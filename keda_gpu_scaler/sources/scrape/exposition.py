"""An exporter's text → samples. A text that is cut off is refused entirely.

Pure. The format's parser is prometheus-client's own.
"""

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.transport.client import OK, Answer, printable

Sample = tuple[dict[str, str], float]
"""Labels, with `__name__` among them, and value."""


def samples(answer: Answer) -> list[Sample]:
    """Return the GPU samples of a scrape.

    Raises:
        errors.SourceRefusedError: the exporter answered with an error.
        errors.SourceMalformedError: the text is cut off or is no exposition text.
    """
    if answer.status != OK:
        words = printable(answer.body[:1024].decode("utf-8", errors="replace"))
        raise errors.SourceRefusedError(f"HTTP {answer.status}: {words}")
    if not answer.body.endswith(b"\n"):
        raise errors.SourceMalformedError("the text is cut: its last line has no end")
    try:
        return list(_samples(answer.body.decode("utf-8")))
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise errors.SourceMalformedError("not Prometheus' exposition text") from error


def _samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        if family.name in profiles.KNOWN_METRICS:
            for sample in family.samples:
                # Not the sample's own name: that of a metric typed as a counter has a suffix here.
                yield {**sample.labels, "__name__": family.name}, float(sample.value)
