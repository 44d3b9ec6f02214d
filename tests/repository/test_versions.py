"""The page on versions lists the versions that the tests run."""

import re
from pathlib import Path

import pytest
import yaml

from tests.repository.chart import charts
from tests.repository.test_docs import ROOT, section

PAGE = ROOT / "docs" / "versions.md"
E2E = ROOT / "tests" / "e2e" / "tools"


def pinned(file: Path, module: str) -> str:
    """Return the version of a module that a go.mod requires."""
    (version,) = re.findall(
        rf"^(?:\t|require ){re.escape(module)} v(\S+)", file.read_text(), re.MULTILINE
    )
    return str(version)


def said() -> dict[str, list[str]]:
    """Return the cells of the table by what they are about."""
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in section(PAGE, "versions")
    ]
    return {row[0]: row[1:] for row in cells[2:]}


def test_what_is_proved_is_what_is_pinned() -> None:
    servers = (ROOT / "docs" / "servers.md").read_text()
    kube, before, old = (E2E / name / "go.mod" for name in ("kube", "kube-1.35", "keda-2.16"))
    prometheus = pinned(ROOT / "tools" / "go.mod", "github.com/prometheus/prometheus")
    makefile = (ROOT / "Makefile").read_text()
    expected = {
        "KEDA": [pinned(each, "github.com/kedacore/keda/v2") for each in (kube, before, old)],
        "Kubernetes": [pinned(each, "k8s.io/kubernetes") for each in (kube, before)],
        "Helm": [pinned(ROOT / "tools" / "helm" / "go.mod", "helm.sh/helm/v4")],
        # As a Go module, Prometheus 3.15.0 is called 0.315.0.
        "Prometheus": [re.sub(r"^0\.3(\d+)", r"3.\1", prometheus), "2.42.0"],
        "VictoriaMetrics": re.findall(r"runs on (1\.\S+): `victoria-metrics`", servers),
        "InfluxDB": ["1.6.7"],
        "Alertmanager": [
            pinned(E2E / "alertmanager" / "go.mod", "github.com/prometheus/alertmanager")
        ],
        "cert-manager": [pinned(E2E / "crds" / "go.mod", "github.com/cert-manager/cert-manager")],
        "prometheus-operator": [
            pinned(E2E / "crds" / "go.mod", "github.com/prometheus-operator/prometheus-operator")
        ],
        "Python": re.findall(r"^PYTHONS := (.*)$", makefile, re.MULTILINE)[0].split(),
    }
    assert {name: cells[0].split(", ") for name, cells in said().items()} == expected


def test_the_oldest_kubernetes_is_the_charts() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/keda-gpu-scaler/Chart.yaml").read_text())
    oldest = re.findall(r">=(\d+\.\d+)", chart["kubeVersion"])
    assert said()["Kubernetes"][2].startswith(f"{oldest[0]} and newer")


def test_the_oldest_python_is_the_packages() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={said()["Python"][0].split(", ")[0]}"' in project


LATER = {
    "behavior: currentReplicas": "2.17",
    'enableTLS: "true"` in the metadata': "2.17",
    "autoscaling.keda.sh/paused-scale-in": "2.18",
}
"""Features on the pages that the oldest KEDA lacks, and the first version that has them.

From KEDA's own CHANGELOG, and from its sources of 2.16.1 and 2.17.0.
"""
ANNOTATIONS = {"paused", "paused-replicas", "paused-scale-in"}


def sections() -> list[str]:
    """Return every part of every page, from one heading of the second order to the next."""
    texts = [page.read_text() for page in (ROOT / "docs").rglob("*.md")]
    return [part for text in texts for part in re.split(r"^## ", text, flags=re.MULTILINE)]


@pytest.mark.parametrize("feature", LATER)
def test_what_an_older_keda_lacks_has_the_first_version_beside_it(feature: str) -> None:
    told = [part for part in sections() if feature in part]
    assert told
    assert [part for part in told if LATER[feature] not in part] == []


def test_the_table_of_what_older_versions_lack_has_all_of_it() -> None:
    lacked = (
        PAGE.read_text().partition("## What older versions of KEDA lack")[2].partition("\n## ")[0]
    )
    rows = dict(re.findall(r"^\| (.+?) \| (2\.\d+) \|", lacked, re.MULTILINE))
    for feature, first in LATER.items():
        (word,) = [one for one in ("behavior", "enableTLS", "paused-scale-in") if one in feature]
        assert [rows[row] for row in rows if word in row] == [first]
        assert f"`{word}" in said()["KEDA"][2] or f".{word}`" in said()["KEDA"][2]


def test_every_annotation_of_keda_in_a_page_is_known_here() -> None:
    named = {
        word
        for part in sections()
        # A dash behind the name takes the annotation away.
        for word in re.findall(r"autoscaling\.keda\.sh/([\w-]+\w)", part)
    }
    assert named == ANNOTATIONS


BLOCK = re.compile(r"^( *)```(?:sh|console)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """Return the commands on a page, with the prompt where there is one."""
    return [
        line.strip() for _, text in BLOCK.findall(page.read_text()) for line in text.splitlines()
    ]


@pytest.mark.needs("helm")
def test_what_the_upgrade_compares_is_what_helm_makes_of_the_values_without_its_test(
    tmp_path: Path,
) -> None:
    (line,) = [one for one in commands(PAGE) if one.startswith("helm template ")]
    rendering, _, compared = line.partition(" | ")
    assert compared == "kubectl diff --filename -"
    file = tmp_path / "values.yaml"
    file.write_text("replicaCount: 3\n")
    _, *words = rendering.replace("values.yaml", str(file)).split()
    made = charts.objects(charts.run("helm", *words))
    (deployment,) = [one for one in made if one["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 3
    assert not [one for one in made if "helm.sh/hook" in one["metadata"].get("annotations", {})]


def test_there_is_one_way_to_upgrade_and_it_keeps_the_values_in_a_file() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    told = {line for page in pages for line in commands(page) if "helm upgrade" in line}
    (upgrade,) = [line for line in told if line in commands(PAGE)]
    assert "--values values.yaml" in upgrade
    # Elsewhere a release gets another setting, and keeps the values that it has.
    for other in told - {upgrade}:
        assert other.startswith("helm get values ")
        assert "--values - --set settings." in other
