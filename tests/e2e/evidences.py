"""A scenario in several labs: with kube-state-metrics, and with exporters alone.

The Kubernetes API as evidence has scenarios of its own.
"""

import itertools
from collections.abc import Iterable

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource

_EACH = EvidenceSource.KUBE_STATE_METRICS, EvidenceSource.EXPORTERS
of_all_pods = pytest.mark.parametrize(
    "lab", [EvidenceSource.KUBE_STATE_METRICS], indirect=True, ids=str
)
"""Runs a scenario with the evidence that covers pods that no exporter has ever shown."""


def each(*, core: EvidenceSource | None = None) -> pytest.MarkDecorator:
    """Run a scenario once with each evidence; the one that is named is in the core."""
    rows = [pytest.param(one, id=str(one), marks=_marks(one is core)) for one in _EACH]
    return pytest.mark.parametrize("lab", rows, indirect=True)


def each_with(
    name: str, values: Iterable[object], *, core: tuple[object, EvidenceSource] | None = None
) -> pytest.MarkDecorator:
    """Run a scenario with each value of a parameter and each evidence; one pair is in the core."""
    pairs = list(itertools.product(values, _EACH))
    assert core is None or core in pairs, core
    rows = [
        pytest.param(value, lab, id=f"{value}-{lab}", marks=_marks((value, lab) == core))
        for value, lab in pairs
    ]
    return pytest.mark.parametrize((name, "lab"), rows, indirect=["lab"])


def _marks(is_core: bool) -> list[pytest.MarkDecorator]:  # noqa: FBT001 - an answer to pass on
    return [pytest.mark.core] if is_core else []
