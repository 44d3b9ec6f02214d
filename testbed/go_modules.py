"""The versions that the go.mod files of the tools name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pinned(folder: str, module: str) -> str:
    """Return the version of a module that a tool's go.mod requires: "2.21.0"."""
    text = (ROOT / folder / "go.mod").read_text()
    (version,) = re.findall(rf"^(?:\t|require ){re.escape(module)} v(\S+)", text, re.MULTILINE)
    return str(version)


def keda(generation: str) -> str:
    """Return the version of KEDA that runs as this line of it: "2.20"."""
    return pinned(f"tests/e2e/tools/{_KEDA[generation]}", "github.com/kedacore/keda/v2")


def kubernetes(generation: str) -> str:
    """Return the version of Kubernetes that runs as this line of it: "1.36"."""
    return pinned(f"tests/e2e/tools/{_KUBERNETES[generation]}", "k8s.io/kubernetes")


_KEDA = {"2.21": "kube", "2.20": "kube-1.35", "2.16": "keda-2.16"}
_KUBERNETES = {"1.36": "kube", "1.35": "kube-1.35", "1.37": "kube-1.37"}
"""The module of each."""
