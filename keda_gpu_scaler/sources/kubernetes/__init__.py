"""What the Kubernetes API says about pods, their owners, and the scale targets of ScaledObjects.

    api         an API server over HTTP: lists in pages, watches line by line, errors in words
    objects     JSON → values, with the few fields that are needed; pure
    labels      label selectors as text, and the pods they select; pure
    selections  the selectors of the scale targets in use
    reflector   list, then watch, again and again: the objects that exist or were deleted recently
    following   all of them together: the ports in `evaluator/ports.py`

It only reads. `serve` imports this package only if the settings ask for it, because it loads a
second HTTP client.
"""

from keda_gpu_scaler.sources.kubernetes.following import Following, create

__all__ = ["Following", "create"]
