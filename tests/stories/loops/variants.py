"""What a claim about a loop is tried with: the evidence, how exporters are scraped, seeds."""

from collections.abc import Sequence

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource

_KUBERNETES = pytest.param(EvidenceSource.KUBERNETES, marks=pytest.mark.nightly)
"""As exact as kube-state-metrics, and as many hours again."""
each = pytest.mark.parametrize(
    "evidence", [_KUBERNETES, EvidenceSource.KUBE_STATE_METRICS, EvidenceSource.EXPORTERS]
)
"""A claim holds with evidence of the cluster, and where exporters are all there is."""
told = pytest.mark.parametrize("evidence", [_KUBERNETES, EvidenceSource.KUBE_STATE_METRICS])
"""A claim holds with evidence of the cluster."""
each_source = pytest.mark.parametrize(
    ("evidence", "is_direct"),
    [
        (EvidenceSource.KUBE_STATE_METRICS, False),
        pytest.param(EvidenceSource.KUBERNETES, True, marks=pytest.mark.nightly),
        (EvidenceSource.EXPORTERS, False),
        (EvidenceSource.EXPORTERS, True),
    ],
)
"""A claim holds with a Prometheus, and where the scaler scrapes the exporters itself."""


def seeded(numbers: Sequence[int]) -> pytest.MarkDecorator:
    """Run a claim with each seed: the first one by day, the others by night."""
    first, *others = numbers
    more = [pytest.param(number, marks=pytest.mark.nightly) for number in others]
    return pytest.mark.parametrize("seed", [first, *more])
