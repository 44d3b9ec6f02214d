"""The JSON Schema for editors and the page with a section for each key say what the reader does."""

import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import trigger
from keda_gpu_scaler.errors import SpecError
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.trigger import KEYS
from tests.repository import schema
from tests.repository.test_docs import DOCS, ROOT
from tests.support.triggers import access

FILE = ROOT / "deploy" / "schema" / "scaledobject.json"
PROPERTIES = schema.metadata()["properties"]
SMALL = {"workload": "bert", "threshold": "70"}
WORDS = st.sampled_from(
    [
        *("70", "-1", "7e1", "nan", " 5 ", "1_0", "2m", "90s", "1h30m", "1.5h", "m", "5 m", "0s"),
        *("sum", "average", "max", "hold", "error", "zero", "inactive", "active", "Hold"),
        *("utilization", "memory", "number", "auto", "dcgm", "gpu-load", "s0-gpu", "-x", "a b", ""),
    ]
)


def is_valid(key: str, value: str) -> bool:
    """Tell whether the schema has this value for a key."""
    one = PROPERTIES[key]
    return re.search(one.get("pattern", ""), value) is not None and value in one.get(
        "enum", [value]
    )


def refused(metadata: dict[str, str]) -> set[str]:
    """Return the keys that the scaler's reader refuses."""
    sources = access(metadata.get("source", "default"))
    try:
        trigger.parse(ScaledObject("inference", "bert"), metadata, sources)
    except SpecError as wrong:
        return {mistake.key for mistake in wrong.mistakes}
    return set()


def test_the_file_is_what_the_keys_give() -> None:
    assert FILE.read_text(encoding="utf-8") == schema.text(), "run make schema"
    assert json.loads(schema.text()) == schema.schema()


@given(st.sampled_from(sorted(KEYS)), WORDS | st.text(max_size=20))
def test_what_the_scaler_takes_is_valid(key: str, value: str) -> None:
    assert key in refused({**SMALL, key: value}) or is_valid(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("signal", "load"),
        ("profile", "dcgm-exporter"),
        ("window", "90"),
        ("activationThreshold", "a few"),
        ("onUnknown", "Hold"),
        ("aggregation", "mean"),
        ("metricName", "gpu load"),
    ],
)
def test_what_editors_can_see_is_invalid(key: str, value: str) -> None:
    assert not is_valid(key, value)


PAGE = (DOCS / "specification.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def row(key: str, name: str) -> str:
    """Return a cell of the table about a key; empty: it has no such row."""
    found = re.search(rf"^\| {name} \| (.+) \|$", SECTIONS[key], re.MULTILINE)
    return found[1].replace(r"\|", "|") if found else ""


def test_the_page_has_each_key_with_its_meaning_default_and_choices() -> None:
    assert sorted(SECTIONS) == sorted(KEYS)
    for key, one in KEYS.items():
        meaning = one.meaning[:1].upper() + one.meaning[1:]
        assert SECTIONS[key].replace("`", "").startswith(f"{meaning.replace('`', '')}. "), key
        otherwise = one.otherwise.removeprefix("-; ").replace("<", r"\<")
        usual = f"`{one.default}`" if one.default else otherwise
        assert row(key, "default") == ("none: optional" if usual == "-" else usual)
        if "enum" in PROPERTIES[key]:
            choices = [f"`{choice}`" for choice in PROPERTIES[key]["enum"]]
            assert row(key, "values").split(", ") == choices


REPLACING = [key for key in SECTIONS if row(key, "in place of")]


@pytest.mark.parametrize("key", REPLACING)
def test_a_key_in_place_of_others_is_taken_too(key: str) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (one,) = yaml.safe_load(block)["triggers"]
    replaced = re.findall(r"`(\w+)`", row(key, "in place of"))
    added = [key, *(other for other in SECTIONS if f"`{key}`" in row(other, "with"))]
    kept = {name: value for name, value in one["metadata"].items() if name not in replaced}
    assert not refused(kept | {each: row(each, "example").strip("`") for each in added})


NUMBERS = [key for key in SECTIONS if row(key, "values").startswith(("a duration", "a number"))]
FIRST_TOO_LARGE = "9007199254740992"


@pytest.mark.parametrize("key", NUMBERS)
def test_the_limits_on_the_page_are_taken_and_what_is_beyond_them_is_not(key: str) -> None:
    beside = SMALL | ({"demandQuery": "vector(1)"} if key.startswith("demand") else {})
    least, _, largest = re.findall(r", (\S+) (to|or more)(?: (\w+))?", row(key, "values"))[0]
    if row(key, "values").startswith("a duration"):
        beyond = ["999ms" if least == "1s" else "-1ms", f"{largest}1ms"]
    else:
        beyond = ["-0.0001" if least == "0" else "0.0009999"]
        beyond.append("90.0001" if largest else FIRST_TOO_LARGE)
    for value in (least, largest or str(int(FIRST_TOO_LARGE) - 1)):
        assert not refused({**beside, key: value}), value
    for value in beyond:
        assert refused({**beside, key: value}), value
