"""A scenario in several labs: one for each way to know which pods there are, and how they are."""

import pytest

from keda_gpu_scaler.evidence import Basis

each = pytest.mark.parametrize("lab", list(Basis), indirect=True, ids=str)
"""Runs a scenario once with each evidence."""
of_all_pods = pytest.mark.parametrize(
    "lab", [basis for basis in Basis if basis is not Basis.EXPORTERS], indirect=True, ids=str
)
"""Runs a scenario once with each evidence that knows of a pod that no exporter has ever shown."""
