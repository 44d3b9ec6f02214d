"""The Kustomize base as it follows from the chart's defaults, comments included.

Helm's own parts are removed: its labels, and the checksum that rolls pods out on new settings.
Kustomize has its own way for that: it appends a hash of the content to a ConfigMap's name.
"""

import re
import textwrap
from pathlib import Path

import yaml

from testbed import charts

SETTINGS = "settings.yaml"
_SOURCE = re.compile(r"^---\n# Source: [\w-]+/templates/([\w.-]+)\n", re.MULTILINE)
_HELM = re.compile(
    r"^ *(app\.kubernetes\.io/managed-by: Helm|helm\.sh/chart: .*)\n"
    r"|^  namespace: keda\n"
    r"|^      annotations:\n        checksum/settings: \w+\n",
    re.MULTILINE,
)

_KUSTOMIZATION = """\
# keda-gpu-scaler as its Helm chart installs it by default, in the namespace keda. Other settings:
# a configMapGenerator of the same name in an overlay, with `behavior: replace`.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: keda
resources:
{resources}
configMapGenerator:
  - name: keda-gpu-scaler
    files: [{settings}]
    options:
      labels:
{labels}
"""
_COMPONENT = """\
# Lets the scaler ask the Kubernetes API which pods there are: a role that only reads, a token, and
# the setting. Name this folder among the `components` of an overlay of the base.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources:
  - rbac.yaml
patches:
  - target:
      kind: Deployment
      name: keda-gpu-scaler
    patch: |
      - op: replace
        path: /spec/template/spec/automountServiceAccountToken
        value: true
      - op: add
        path: /spec/template/spec/containers/0/env/-
        value:
          name: KEDA_GPU_SCALER_KUBERNETES
          value: "true"
"""


def files() -> dict[Path, str]:
    """Return every file of the base and of its component, by its path."""
    parts = _parts(charts.template("--skip-tests"))
    config = next(iter(charts.objects(parts.pop("configmap.yaml"))))
    evidence = _parts(charts.rendered("kubernetes-evidence", "--skip-tests"))["rbac.yaml"]
    return {
        charts.BASE / "kustomization.yaml": _kustomization(parts, config["metadata"]["labels"]),
        charts.BASE / SETTINGS: config["data"][SETTINGS],
        **{charts.BASE / name: text for name, text in parts.items()},
        charts.COMPONENT / "kustomization.yaml": _COMPONENT,
        charts.COMPONENT / "rbac.yaml": evidence,
    }


def _parts(manifests: str) -> dict[str, str]:
    """Divide manifests by the template that each is of, and leave out what is Helm's."""
    _, *pieces = _SOURCE.split(manifests)
    parts: dict[str, list[str]] = {}
    for name, text in zip(pieces[::2], pieces[1::2], strict=True):
        parts.setdefault(name, []).append(_HELM.sub("", text).strip() + "\n")
    return {name: "---\n".join(texts) for name, texts in parts.items()}


def _kustomization(parts: dict[str, str], labels: dict[str, str]) -> str:
    return _KUSTOMIZATION.format(
        resources="\n".join(f"  - {name}" for name in sorted(parts)),
        settings=SETTINGS,
        labels=textwrap.indent(yaml.safe_dump(labels, sort_keys=False).rstrip(), " " * 8),
    )
