"""The page on versions lists the versions that the tests run."""

import re
from pathlib import Path

import pytest
import yaml

from tests.e2e import every_generation, generation, ran
from tests.repository import versions
from tests.repository.chart import charts
from tests.repository.test_docs import ROOT, section
from tests.repository.versions import PAGE
from tests.support import go_modules
from tests.support.go_modules import pinned


def said() -> dict[str, list[str]]:
    """Return the cells of the table by what they are about."""
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in section(PAGE, "versions")
    ]
    return {row[0]: row[1:] for row in cells[2:]}


def test_what_is_proved_is_what_is_pinned() -> None:
    servers = (ROOT / "docs" / "servers.md").read_text()
    prometheus = pinned("tools", "github.com/prometheus/prometheus")
    operator = "github.com/prometheus-operator/prometheus-operator"
    makefile = (ROOT / "Makefile").read_text()
    expected = {
        "Helm": [pinned("tools/helm", "helm.sh/helm/v4")],
        # As a Go module, Prometheus 3.15.0 is called 0.315.0.
        "Prometheus": [re.sub(r"^0\.3(\d+)", r"3.\1", prometheus), "2.42.0"],
        "VictoriaMetrics": re.findall(r"runs on (1\.\S+): `victoria-metrics`", servers),
        "InfluxDB": ["1.6.7"],
        "Alertmanager": [
            pinned("tests/e2e/tools/alertmanager", "github.com/prometheus/alertmanager")
        ],
        "cert-manager": [pinned("tests/e2e/tools/crds", "github.com/cert-manager/cert-manager")],
        "prometheus-operator": [pinned("tests/e2e/tools/crds", operator)],
        "Python": re.findall(r"^PYTHONS := (.*)$", makefile, re.MULTILINE)[0].split(),
    }
    found = {name: cells[0].split(", ") for name, cells in said().items()}
    assert found == expected | {name: text.split(", ") for name, text in versions.proved().items()}


def test_the_page_is_made_from_what_ran() -> None:
    assert PAGE.read_text() == versions.text(), "run make versions-page"


def test_every_generation_ran_in_the_versions_that_are_pinned_and_passed() -> None:
    expected = [
        (go_modules.keda(keda), go_modules.kubernetes(kubernetes))
        for keda, kubernetes in generation.ALL
    ]
    assert [(one.keda, one.kubernetes) for one in ran.read()] == expected, "run make e2e-all"
    assert [one for one in ran.read() if one.failed or not one.passed] == []


def test_each_generation_ran_every_scenario_or_the_part_that_is_marked() -> None:
    assert {one.mark for one in ran.read()} <= {"", every_generation.MARK}


def test_the_oldest_kubernetes_is_the_charts() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/keda-gpu-scaler/Chart.yaml").read_text())
    oldest = re.findall(r">=(\d+\.\d+)", chart["kubeVersion"])
    assert said()["Kubernetes"][2].startswith(f"{oldest[0]} and newer")


def test_the_oldest_python_is_the_packages() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={said()["Python"][0].split(", ")[0]}.' in project


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
    file.write_text("replicaCount: 3\nimage: {repository: keda-gpu-scaler}\n")
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
