"""Samples of GPU metrics, as labels and numbers that a test can write and compare."""

from array import array

from keda_gpu_scaler.sources.scrape.page_samples import PageSamples, PageSeries

Sample = tuple[dict[str, str], float]
"""Labels, with `__name__` among them, and value."""


def of(*samples: Sample) -> PageSamples:
    """Return them as those of one page."""
    series = tuple(PageSeries.of(labels.items()) for labels, _ in samples)
    return PageSamples(series, array("d", [value for _, value in samples]))


def shown(samples: PageSamples) -> list[Sample]:
    return [(dict(labels.pairs), value) for labels, value in zip(*samples, strict=True)]
