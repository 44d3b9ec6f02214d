"""Helm and kubectl, their output for the chart and the base, and the cases that are tested."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from testbed import go_modules, programs

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy" / "helm" / "keda-gpu-scaler"
BASE = ROOT / "deploy" / "kustomize"
COMPONENT = BASE / "kubernetes-evidence"
GOLDEN = ROOT / "tests" / "repository" / "chart" / "golden"
RELEASE, NAMESPACE = "keda-gpu-scaler", "keda"
KUBE_VERSION = go_modules.kubernetes("1.36")
"""No cluster is asked. Without this version, the programs use the newest they know."""
IMAGE = ("--values", str(CHART / "ci" / "default-values.yaml"))
"""The one value that has to be given; values that come later win."""
_VALUES = "-values.yaml"
_SECONDS = 300

Object = dict[str, Any]


def cases() -> list[str]:
    """Name the cases: the files of values that lie with the chart."""
    return sorted(path.name.removesuffix(_VALUES) for path in (CHART / "ci").iterdir())


def values(case: str) -> Path:
    return CHART / "ci" / f"{case}{_VALUES}"


def template(*flags: str, release: str = RELEASE, namespace: str = NAMESPACE) -> str:
    """Return the manifests of a release, as `helm template` writes them.

    Raises:
        subprocess.CalledProcessError: Helm refuses; `stderr` says why.
    """
    words = ("template", release, str(CHART), "--namespace", namespace, *IMAGE)
    return run("helm", *words, "--kube-version", KUBE_VERSION, *flags)


def rendered(case: str, *flags: str) -> str:
    return template("--values", str(values(case)), *flags)


def notes(*flags: str, release: str = RELEASE, namespace: str = NAMESPACE) -> str:
    """Return the notes that Helm prints after an install."""
    words = ("install", release, str(CHART), "--namespace", namespace, *IMAGE, "--dry-run=client")
    return run("helm", *words, *flags).partition("\nNOTES:\n")[2]


def kustomized(directory: Path = BASE) -> str:
    return run("kubectl", "kustomize", str(directory))


def decided() -> set[str]:
    """Name the settings that other values of the chart decide."""
    return set(_listed("_checks_settings.tpl", "decided"))


def guesses() -> dict[str, str]:
    """Return the names of values that other charts have, with what to do in this one."""
    return _listed("_names.tpl", "guesses")


def _listed(file: str, name: str) -> dict[str, str]:
    text = (CHART / "templates" / file).read_text()
    found = re.search(rf'define "keda-gpu-scaler.{name}" -}}}}(.*?){{{{- end', text, re.DOTALL)
    if found is None:
        raise ValueError(f"{file} defines no {name}")
    listed: dict[str, str] = yaml.safe_load(found[1])
    return listed


def objects(manifests: str) -> list[Object]:
    return [manifest for manifest in yaml.safe_load_all(manifests) if manifest is not None]


def refusal(*flags: str, release: str = RELEASE, namespace: str = NAMESPACE) -> str:
    """Return why Helm refuses values; fail if it does not."""
    try:
        template(*flags, release=release, namespace=namespace)
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    message = f"Helm takes {' '.join(flags)}"
    raise AssertionError(message)


def run(program: str, *words: str) -> str:
    """Run a program to its end, with no cluster in reach, and return its output."""
    finished = subprocess.run(
        [programs.path(program), *words],
        capture_output=True,
        check=True,
        text=True,
        timeout=_SECONDS,
        env={name: text for name, text in os.environ.items() if name != "KUBECONFIG"},
    )
    return finished.stdout
