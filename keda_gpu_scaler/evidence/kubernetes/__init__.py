"""What the Kubernetes API says about pods, their owners, and the scale targets of ScaledObjects.

It only reads, but for what `deletion-cost` annotates (`api.Api.annotate`). `following` makes the
ports in `evaluator/ports.py` of the other modules. `serve` imports this package only if the
settings ask for it, because it loads a second HTTP client.
"""

from keda_gpu_scaler.evidence.kubernetes.following import Following, create

__all__ = ["Following", "create"]
