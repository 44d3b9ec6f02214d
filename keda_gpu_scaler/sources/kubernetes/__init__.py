"""What the Kubernetes API says of pods, of their owners, and of what ScaledObjects scale.

    api        an API server over HTTP: lists in pages, watches line by line, errors in words
    objects    JSON → values, with the few fields that are needed; pure
    listing    the objects of one resource: those there are, and those that lately went
    labels     label selectors as text, and whom they select; pure
    selections the selectors of the scale targets that somebody asks about
    reflector  list, then watch, again and again; whether that works, and since when not
    following  all of them together: the port in `evaluator/ports.py`

It only ever reads. `serve` imports this package where the settings ask for it, and
nothing of it otherwise: it brings a second HTTP client.
"""

from keda_gpu_scaler.sources.kubernetes.following import create

__all__ = ["create"]
