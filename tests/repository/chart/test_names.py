"""Names of values: those of other charts are refused with ours."""

import pytest

from testbed import charts
from tests.repository.test_docs import section

OURS = {row.split("`")[1] for row in section(charts.CHART / "README.md", "chart-values")[2:]}


def _is_ours(name: str) -> bool:
    return any(path == name or path.startswith(f"{name}.") for path in OURS)


@pytest.mark.needs("helm")
@pytest.mark.parametrize("guess", ["x", "{x}", "null"])
def test_every_name_of_another_chart_is_refused_with_what_to_set(guess: str) -> None:
    """Whatever its value is, and all of them at once."""
    flags = [word for path in charts.guesses() for word in ("--set", f"{path}={guess}")]
    told = charts.refusal(*flags)
    lines = [f"- {path} is no value of this chart: {to}" for path, to in charts.guesses().items()]
    assert [line for line in lines if line not in told] == []
    assert len(lines) >= 30


@pytest.mark.parametrize("guess", charts.guesses())
def test_what_is_named_in_its_place_is_a_value_of_the_chart(guess: str) -> None:
    assert not _is_ours(guess)
    words = [word.strip("`,;") for word in charts.guesses()[guess].split()]
    assert words[0] in {"set", "leave"}
    first = {path.partition(".")[0] for path in OURS}
    named = [word for word in words if word.partition(".")[0] in first]
    assert [one for one in named if not (_is_ours(one) or one.startswith("settings."))] == []
    assert named or words[0] == "leave"
