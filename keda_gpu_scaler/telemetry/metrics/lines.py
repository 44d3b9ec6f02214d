"""Lines of gauges of thousands of triggers, without an object for each sample.

They are those that prometheus_client writes, byte by byte, in its text format and in OpenMetrics.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property

from prometheus_client.core import GaugeMetricFamily, Metric, Sample
from prometheus_client.utils import floatToGoString

from keda_gpu_scaler.telemetry.metrics import table

_number: Callable[[float], str] = floatToGoString


class LinedGauge(Metric):
    """A gauge, or a part of one, that writes its own lines."""

    def __init__(
        self,
        metric: table.Metric,
        lines: Callable[[], str],
        family: Callable[[], GaugeMetricFamily],
    ) -> None:
        """Take the gauge.

        Args:
            metric: its name and meaning.
            lines: returns its lines, without those of its name and meaning.
            family: returns the same samples, for an encoder that changes their names.
        """
        super().__init__(metric.name, metric.meaning, "gauge")
        del self.samples
        self.lines, self._family = lines, family

    @cached_property
    def samples(self) -> list[Sample]:  # type: ignore[override]  # it is read only
        """The samples; they are made only if an encoder reads them."""
        return self._family().samples


def label_text(names: Sequence[str], labels: Sequence[str]) -> str:
    """Return labels as they are between the braces, sorted by their names."""
    pairs = sorted(zip(names, labels, strict=True))
    return ",".join(f'{name}="{_escaped(label)}"' for name, label in pairs)


def numbers(metric: table.Metric, texts: Iterable[str], values: Iterable[float | None]) -> str:
    """Return a line for each value that is not None.

    Args:
        metric: the gauge.
        texts: the labels of each value, as text.
        values: the values.
    """
    begin = f"{metric.name}{{"
    return "".join(
        [
            f"{begin}{text}}} {_number(value)}\n"
            for text, value in zip(texts, values, strict=True)
            if value is not None
        ]
    )


def choices(
    metric: table.Metric, words: Collection[str], texts: Iterable[str], chosen: Iterable[str | None]
) -> str:
    """Return 1 for a chosen word and 0 for the others, in the metric's last label.

    Args:
        metric: the gauge.
        words: all of them, which need no escaping.
        texts: the other labels of each choice, as text.
        chosen: the choices; one that is None has no lines.
    """
    *others, name = metric.labels
    form = '{{{0}="{1}",\0}} {2}\n' if name < min(others) else '{{\0,{0}="{1}"}} {2}\n'
    around = {
        one: "".join(
            metric.name + form.format(name, word, _number(word == one)) for word in words
        ).split("\0")
        for one in words
    }
    return "".join(
        [text.join(around[one]) for text, one in zip(texts, chosen, strict=True) if one is not None]
    )


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
