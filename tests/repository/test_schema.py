"""The JSON Schema for editors and the page with every key say what the reader does."""

import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import trigger
from keda_gpu_scaler.errors import SpecError
from keda_gpu_scaler.spec.spec import ScaledObject, Signal
from keda_gpu_scaler.trigger import KEDA_KEYS, KEYS
from tests.repository.test_docs import DOCS, ROOT, section
from tests.support.triggers import access
from tools import schema

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
(YAML,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
WRITTEN: dict[str, str] = yaml.safe_load(YAML)["triggers"][0]["metadata"]
BESIDE = {
    name: (yaml.safe_load(value), relation, others.split(", "))
    for name, value, relation, others in re.findall(
        r"^ +# (\w+): (.+) # (in place of|with) (.+)$", YAML, re.MULTILINE
    )
}
"""The keys in comments: those that stand in place of another one, or only with another one."""
VALUES = {
    cells[1].split("`")[1]: cells[3].strip()
    for row in section(DOCS / "specification.md", "trigger-keys")[2:]
    for cells in [row.split("|")]
}
LISTED = ("aggregation", "gpuAggregation", "demandOnEmpty", "onUnknown")
"""The keys with few choices, which their meaning has; other choices have tables."""


def test_the_yaml_has_every_key() -> None:
    assert sorted([*WRITTEN.keys() - KEDA_KEYS, *BESIDE]) == sorted(KEYS)


@pytest.mark.parametrize("key", LISTED)
def test_the_meaning_of_a_key_has_each_choice(key: str) -> None:
    assert set(PROPERTIES[key]["enum"]) <= set(re.findall(r"\w+", KEYS[key].meaning))


def test_the_page_has_every_signal() -> None:
    table = PAGE.partition("## What is measured")[2].partition("\n\nA loaded")[0]
    names = [row.split("|")[1] for row in table.strip().splitlines()[2:]]
    assert re.findall(r"`([\w-]+)`", ", ".join(names).replace("`query`", "")) == list(Signal)


@pytest.mark.parametrize("key", [name for name, one in BESIDE.items() if one[1] == "in place of"])
def test_a_key_in_place_of_others_is_taken_too(key: str) -> None:
    kept = {name: value for name, value in WRITTEN.items() if name not in BESIDE[key][2]}
    added = [key, *(other for other, one in BESIDE.items() if one[1:] == ("with", [key]))]
    assert not refused(kept | {each: BESIDE[each][0] for each in added})


NUMBERS = [key for key, one in VALUES.items() if one.startswith(("a duration", "a number"))]
FIRST_TOO_LARGE = "9007199254740992"


@pytest.mark.parametrize("key", NUMBERS)
def test_the_limits_on_the_page_are_taken_and_what_is_beyond_them_is_not(key: str) -> None:
    beside = SMALL | ({"demandQuery": "vector(1)"} if key.startswith("demand") else {})
    least, _, largest = re.findall(r", (\S+) (to|or more)(?: (\w+))?", VALUES[key])[0]
    if VALUES[key].startswith("a duration"):
        beyond = ["999ms" if least == "1s" else "-1ms", f"{largest}1ms"]
    else:
        beyond = ["-0.0001" if least == "0" else "0.0009999"]
        beyond.append("90.0001" if largest else FIRST_TOO_LARGE)
    for value in (least, largest or str(int(FIRST_TOO_LARGE) - 1)):
        assert not refused({**beside, key: value}), value
    for value in beyond:
        assert refused({**beside, key: value}), value
