"""The chart's metadata, as chart indexes show it."""

import tarfile
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
