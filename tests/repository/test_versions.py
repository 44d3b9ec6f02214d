"""The pages list the versions that the tests run."""

import re

import yaml

from tests.e2e import every_generation, generation, ran
from tests.repository import versions
from tests.repository.test_docs import ROOT, section
from tests.repository.versions import PAGE
from tests.support import go_modules
from tests.support.go_modules import pinned

# As a Go module, Prometheus 3.15.0 is called 0.315.0.
PROMETHEUS = re.sub(r"^0\.3(\d+)", r"3.\1", pinned("tools", "github.com/prometheus/prometheus"))


def said() -> dict[str, list[str]]:
    """Return the cells of the table by what they are about."""
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in section(PAGE, "versions")
    ]
    return {row[0]: row[1:] for row in cells[2:]}


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
        **{name: text.split(", ") for name, text in versions.proved().items()},
    }
    assert {name: said()[name][0].split(", ") for name in expected} == expected


def test_the_page_is_made_from_what_ran() -> None:
    assert PAGE.read_text() == versions.text(), "run make versions-page"


def test_every_generation_ran_in_the_versions_that_are_pinned_and_passed() -> None:
    expected = [
        (go_modules.keda(keda), go_modules.kubernetes(kubernetes))
        for keda, kubernetes in generation.ALL
    ]
    assert [(one.keda, one.kubernetes) for one in ran.read()] == expected, "run make e2e-all"
    assert [one for one in ran.read() if one.failed or not one.passed] == []
    assert {one.mark for one in ran.read()} <= {"", every_generation.MARK}


def test_the_oldest_kubernetes_is_the_charts_and_the_oldest_python_the_packages() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/keda-gpu-scaler/Chart.yaml").read_text())
    (oldest,) = re.findall(r">=(\d+\.\d+)", chart["kubeVersion"])
    assert said()["Kubernetes"][2].startswith(f"{oldest} and newer")
    project = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={said()["Python"][0].split(", ")[0]}.' in project


def test_the_readme_names_the_versions_that_the_scenarios_run() -> None:
    readme = (ROOT / "README.md").read_text()
    proved = readme.partition("**Tested on the real programs:**")[2].partition("## ")[0]
    written = re.findall(r"(KEDA|Kubernetes|Prometheus)\s([0-9.]+[0-9])", proved)
    assert written == [
        ("KEDA", go_modules.keda("2.21")),
        ("Kubernetes", go_modules.kubernetes("1.36")),
        ("Prometheus", PROMETHEUS),
        ("KEDA", go_modules.keda("2.20")),
        ("Kubernetes", go_modules.kubernetes("1.35")),
        ("KEDA", go_modules.keda("2.16")),
        ("Kubernetes", go_modules.kubernetes("1.37")),
    ]
