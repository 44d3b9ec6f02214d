"""A scenario in several labs: with kube-state-metrics, and with exporters alone.

What the Kubernetes API knows beyond them has scenarios of its own.
"""

import pytest

from keda_gpu_scaler.evidence import Basis

each = pytest.mark.parametrize(
    "lab", [Basis.KUBE_STATE_METRICS, Basis.EXPORTERS], indirect=True, ids=str
)
"""Runs a scenario once with each evidence."""
of_all_pods = pytest.mark.parametrize("lab", [Basis.KUBE_STATE_METRICS], indirect=True, ids=str)
"""Runs a scenario with the evidence that knows of a pod that no exporter has ever shown."""
