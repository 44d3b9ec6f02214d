"""The page with one trigger of every key is what the code says, and the scaler takes it."""

import re
from typing import Any

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.errors import SpecError
from keda_gpu_scaler.spec.spec import ScaledObject, Signal, TriggerSpec
from tests.repository import specification
from tests.repository.specification import EXAMPLES, GROUPS, LIMITS, NEEDED, PAGE, REPLACED
from tests.support.triggers import access

FIRST_TOO_LARGE = "9007199254740992"
COMMENTED = REPLACED.keys() | NEEDED.keys()


def shown() -> dict[str, str]:
    """Return the metadata of the page's trigger."""
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (one,) = yaml.safe_load(block)["triggers"]
    metadata: dict[str, str] = one["metadata"]
    return metadata


def read(metadata: dict[str, str]) -> TriggerSpec:
    return trigger.parse(ScaledObject("inference", "bert"), metadata, access())


def is_taken(**metadata: Any) -> bool:  # noqa: ANN401 - values of keys
    """Tell whether a small trigger with these keys is taken."""
    try:
        read({"workload": "bert", "threshold": "70", **metadata})
    except SpecError:
        return False
    return True


def test_the_page_is_made_from_the_keys_that_there_are_now() -> None:
    assert PAGE.read_text() == specification.text(), "run make schema"


def test_every_key_is_in_one_group_and_has_a_heading_for_its_anchor() -> None:
    grouped = [key for group in GROUPS for key in group.keys]
    assert sorted(grouped) == sorted(trigger.KEYS)
    assert re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE) == grouped


def test_the_trigger_has_every_key_and_is_taken_without_a_warning() -> None:
    assert shown().keys() == {"scalerAddress", *trigger.KEYS} - COMMENTED
    assert read(shown()).warnings == ()


def test_the_keys_that_are_comments_are_the_ones_that_replace_others() -> None:
    commented = re.findall(r"^ +# (\w+): ", PAGE.read_text(), re.MULTILINE)
    assert set(commented) - {"aggregation", "external"} >= COMMENTED


@pytest.mark.parametrize("key", REPLACED)
def test_a_key_in_place_of_others_is_taken_too(key: str) -> None:
    with_it = {each for each, needed in NEEDED.items() if needed == key}
    kept = {name: value for name, value in shown().items() if name not in REPLACED[key]}
    found = read(kept | {each: EXAMPLES[each] for each in {key, *with_it}})
    assert found.warnings == ()


def test_an_example_is_the_default_where_there_is_one() -> None:
    fixed = {name: key.default for name, key in trigger.KEYS.items() if key.default is not None}
    assert {name: EXAMPLES[name] for name in fixed} == fixed


def beyond(key: str) -> list[str]:
    """Return values just outside of a key's limits."""
    least, largest = LIMITS[key]
    if largest in ("1h", "1d"):
        return ["999ms" if least == "1s" else "-1ms", f"{largest}1ms"]
    below = "-0.0001" if least == "0" else "0.0009999"
    return [below, "90.0001" if largest == "90" else FIRST_TOO_LARGE]


@pytest.mark.parametrize("key", LIMITS)
def test_the_limits_of_a_key_are_taken_and_what_is_beyond_them_is_not(key: str) -> None:
    beside = {"demandQuery": "vector(1)"} if key.startswith("demand") else {}
    least, largest = LIMITS[key]
    for value in (least, largest or str(int(FIRST_TOO_LARGE) - 1)):
        assert is_taken(**beside, **{key: value}), value
    for value in beyond(key):
        assert not is_taken(**beside, **{key: value}), value


def test_a_threshold_above_90_is_taken_where_a_load_can_be_above_100() -> None:
    assert is_taken(threshold="400", signal=Signal.POWER, activationThreshold="80")
    assert is_taken(threshold="140", gpuAggregation="sum")
    assert not is_taken(threshold="140")
