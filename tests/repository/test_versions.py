"""The pages list the versions that the tests run."""

import re
from collections.abc import Iterable

import yaml
from packaging.version import Version

from testbed.go_modules import keda, kubernetes, pinned
from tests.repository.test_docs import DOCS, ROOT, section

PAGE = DOCS / "versions.md"
GENERATIONS = [
    (keda(of_keda), kubernetes(of_kubernetes))
    for of_keda, of_kubernetes in re.findall(
        r"([\d.]+)/([\d.]+)",
        re.findall(r"^GENERATIONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0],
    )
]
"""The versions of KEDA and of Kubernetes that `make e2e-all` runs."""

# As a Go module, Prometheus 3.15.0 is called 0.315.0.
PROMETHEUS = re.sub(r"^0\.3(\d+)", r"3.\1", pinned("tools", "github.com/prometheus/prometheus"))


def said() -> dict[str, list[str]]:
    """Return the cells of the table by what they are about."""
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in section(PAGE, "versions")
    ]
    return {row[0]: row[1:] for row in cells[2:]}


def newest_first(versions: Iterable[str]) -> list[str]:
    return sorted(set(versions), key=Version, reverse=True)


def test_what_is_proved_is_what_is_pinned() -> None:
    operator = "github.com/prometheus-operator/prometheus-operator"
    makefile = (ROOT / "Makefile").read_text()
    expected = {
        "Helm": [pinned("tools/helm", "helm.sh/helm/v4")],
        "Prometheus": [PROMETHEUS, "2.42.0"],
        "InfluxDB": ["1.6.7"],
        "Alertmanager": [
            pinned("tests/e2e/tools/alertmanager", "github.com/prometheus/alertmanager")
        ],
        "cert-manager": [pinned("tests/e2e/tools/crds", "github.com/cert-manager/cert-manager")],
        "prometheus-operator": [pinned("tests/e2e/tools/crds", operator)],
        "Python": re.findall(r"^PYTHONS := (.*)$", makefile, re.MULTILINE)[0].split(),
        "KEDA": newest_first(of_keda for of_keda, _ in GENERATIONS),
        "Kubernetes": newest_first(of_kubernetes for _, of_kubernetes in GENERATIONS),
    }
    assert {name: said()[name][0].split(", ") for name in expected} == expected


def test_the_page_says_what_ran_on_what() -> None:
    table = PAGE.read_text().partition("## What ran on what")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (\d\S+) \| (\S+) \|", table, re.MULTILINE) == GENERATIONS


def test_the_oldest_kubernetes_is_the_charts_and_the_oldest_python_the_packages() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/keda-gpu-scaler/Chart.yaml").read_text())
    (oldest,) = re.findall(r">=(\d+\.\d+)", chart["kubeVersion"])
    assert said()["Kubernetes"][2].startswith(f"{oldest} and newer")
    project = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={said()["Python"][0].split(", ")[0]}.' in project
