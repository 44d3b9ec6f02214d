"""Generated files are up to date with their sources; `make chart` writes them anew."""

import pytest
import yaml

from tests.repository.test_docs import section
from tools.chart import charts, comments, kustomized, regenerate, schema

ANEW = "run make chart, and look at what changes"


@pytest.mark.needs("helm")
@pytest.mark.parametrize("case", charts.cases())
def test_a_case_renders_what_was_looked_at(case: str) -> None:
    assert regenerate.golden(case).read_text() == regenerate.manifests(case), ANEW


def test_every_golden_file_is_of_a_case() -> None:
    assert {path.stem for path in charts.GOLDEN.iterdir()} == set(charts.cases())


def test_the_schema_has_exactly_the_settings_there_are() -> None:
    assert schema.SCHEMA.read_text() == schema.text(), ANEW


@pytest.mark.needs("helm")
def test_the_base_is_written_as_the_defaults_are() -> None:
    for path, text in kustomized.files().items():
        assert path.read_text() == text, ANEW


def test_the_readme_has_every_value_with_its_default() -> None:
    assert section(regenerate.PAGE, comments.PAGE_MARK) == comments.table(), ANEW


def _set_in(value: object, path: str) -> bool:
    for step in path.split("."):
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True


def test_the_cases_leave_no_value_out() -> None:
    given = [yaml.safe_load(charts.values(case).read_text()) for case in charts.cases()]
    paths = [one.path for one in comments.values()]
    without = {"serviceAccount.create", "settingsSecret.name", "settingsSecret.key"}
    only_on = {"podDisruptionBudget.enabled", "networkPolicy.enabled"}
    left = {path for path in paths if not any(_set_in(one, path) for one in given)}
    assert left == without | only_on


@pytest.mark.needs("helm")
def test_helm_finds_nothing_to_complain_of() -> None:
    for case in charts.cases():
        charts.run(
            "helm", "lint", "--strict", "--values", str(charts.values(case)), str(charts.CHART)
        )
