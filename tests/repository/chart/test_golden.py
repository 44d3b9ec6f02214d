"""Generated files are up to date with their sources; `make chart` writes them anew."""

import pytest

from testbed import charts
from tests.repository.test_docs import section
from tools.chart import comments, kustomized, regenerate, schema

ANEW = "run make chart, and look at what changes"


@pytest.mark.needs("helm")
@pytest.mark.parametrize("case", charts.cases())
def test_a_case_renders_what_was_looked_at(case: str) -> None:
    assert regenerate.golden(case).read_text() == regenerate.manifests(case), ANEW


def test_the_schema_has_exactly_the_settings_there_are() -> None:
    assert schema.SCHEMA.read_text() == schema.text(), ANEW


@pytest.mark.needs("helm")
def test_the_base_is_written_as_the_defaults_are() -> None:
    for path, text in kustomized.files().items():
        assert path.read_text() == text, ANEW


def test_the_readme_has_every_value_with_its_default() -> None:
    assert section(regenerate.PAGE, comments.PAGE_MARK) == comments.table(), ANEW


@pytest.mark.needs("helm")
def test_helm_finds_nothing_to_complain_of() -> None:
    for case in charts.cases():
        charts.run(
            "helm", "lint", "--strict", "--values", str(charts.values(case)), str(charts.CHART)
        )
