"""What Kustomize calls patches: files that are parts of objects, and are not looked at. Pure."""

from collections.abc import Iterator

from keda_gpu_scaler.check import documents
from keda_gpu_scaler.check.nodes import Scalar, Sequence

FILES = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
"""The names of a kustomization."""


def patches(kustomization: str) -> Iterator[str]:
    """Yield the files that the text of a kustomization names as patches, relative to it."""
    for document in documents.read(kustomization).documents:
        for key in ("patches", "patchesJson6902"):
            yield from (one.text("path") for one in document.blocks(key) if one.has("path"))
        merged = document.get("patchesStrategicMerge")
        if isinstance(merged, Sequence):
            yield from (one.text for one in merged.items if isinstance(one, Scalar))
