"""The chart's metadata, as chart indexes show it."""

import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.repository.chart import charts

CHART = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())


def test_changes_are_in_the_form_that_artifact_hub_reads() -> None:
    changes = yaml.safe_load(CHART["annotations"]["artifacthub.io/changes"])
    kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}
    assert {one["kind"] for one in changes} <= kinds
    assert all(one["description"] for one in changes)


def test_it_names_the_project_as_the_package_does() -> None:
    project = tomllib.loads((charts.ROOT / "pyproject.toml").read_text())["project"]
    assert CHART["home"] == project["urls"]["Source"]
    assert CHART["sources"] == [CHART["home"]]
    (author,), (maintainer,) = project["authors"], CHART["maintainers"]
    assert maintainer["name"] == author["name"]
    assert CHART["home"].startswith(f"{maintainer['url']}/")


def test_its_readme_names_the_kubernetes_that_it_needs() -> None:
    readme = (charts.CHART / "README.md").read_text()
    assert f"Kubernetes: `{CHART['kubeVersion']}`" in readme


def test_annotations_are_texts() -> None:
    assert {type(text) for text in CHART["annotations"].values()} == {str}


@pytest.mark.needs("helm")
def test_the_package_has_the_readme_and_no_values_of_tests(tmp_path: Path) -> None:
    charts.run("helm", "package", str(charts.CHART), "--destination", str(tmp_path))
    (archive,) = tmp_path.iterdir()
    assert archive.name == f"keda-gpu-scaler-{CHART['version']}.tgz"
    with tarfile.open(archive) as package:
        names = {name.removeprefix("keda-gpu-scaler/") for name in package.getnames()}
    assert names >= {"README.md", "values.schema.json", "templates/NOTES.txt"}
    assert [name for name in names if name.startswith("ci/")] == []
