"""Each rule finds what it is for, at the key that is at fault, and nothing beside it."""

import pytest

from keda_gpu_scaler.check import catalog
from tests.check.cases import FOLDER, found, marked, text

RULES = [name for name in catalog.RULES if name not in catalog.LIVE]


def test_each_rule_has_a_passing_and_a_failing_file() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(RULES)
    for rule in RULES:
        assert {path.name for path in (FOLDER / rule).iterdir()} == {"pass.yaml", "fail.yaml"}


@pytest.mark.parametrize("rule", RULES)
def test_the_failing_file_has_exactly_what_its_comments_say(rule: str) -> None:
    wanted = marked(text(rule, "fail"))
    assert rule in {place.rule for place in wanted}
    assert sorted(found(text(rule, "fail"))) == sorted(wanted)


@pytest.mark.parametrize("rule", RULES)
def test_the_passing_file_has_nothing(rule: str) -> None:
    assert found(text(rule)) == []
