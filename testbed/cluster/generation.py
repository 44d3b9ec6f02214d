"""Which KEDA and which Kubernetes run: the newest ones, or those that the environment names.

`make e2e KEDA=2.20 KUBERNETES=1.35` runs the generation before.
"""

import os
from collections.abc import Iterable, Mapping

from testbed.programs import PROGRAMS

_KEDA_FOLDERS = {"2.21": "", "2.20": "keda-2.20/", "2.16": "keda-2.16/"}
"""Where the programs of each version are; the first one runs unless another is named."""
_KUBERNETES_FOLDERS = {"1.36": "", "1.37": "kube-1.37/", "1.35": "kube-1.35/"}


def _chosen(variable: str, versions: Mapping[str, str]) -> str:
    """Return the version that an environment variable names, without one the newest."""
    version = os.environ.get(variable) or next(iter(versions))
    if version not in versions:
        raise RuntimeError(f"{variable} is {version!r}: name one of {', '.join(versions)}")
    return version


KEDA = _chosen("KEDA", _KEDA_FOLDERS)
KUBERNETES = _chosen("KUBERNETES", _KUBERNETES_FOLDERS)
KEDA_IS_OLD = KEDA in {"2.20", "2.16"}
"""Whether it polls values that the HPA asks for as well, and never opens StreamMetricSpec."""
KEDA_IS_OLDEST = KEDA == "2.16"
"""Whether it reads whole numbers only, lacks what came later, and runs without its webhooks."""


def keda() -> dict[str, str]:
    """Return the programs of the chosen KEDA by their parts; the oldest has no webhooks."""
    parts = "keda-operator", "keda-adapter", "keda-webhooks", "keda-crds.yaml"
    return _programs(_KEDA_FOLDERS[KEDA], parts)


def kubernetes() -> dict[str, str]:
    """Return the programs of the chosen Kubernetes by their parts."""
    parts = "kube-apiserver", "kube-controller-manager", "kube-scheduler"
    return _programs(_KUBERNETES_FOLDERS[KUBERNETES], parts)


def _programs(folder: str, parts: Iterable[str]) -> dict[str, str]:
    return {part: folder + part for part in parts if folder + part in PROGRAMS}


CLUSTER = ("etcd", *kubernetes().values(), *keda().values(), "kwok", "prometheus")
"""The programs that run under every scenario."""
