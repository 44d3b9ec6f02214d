"""What the schema lets through among the settings, the scaler reads; and what is usual passes."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import describe, load, process, sources
from tests.repository.chart import charts, forms, schema

pytestmark = pytest.mark.needs("helm")

REQUIRED: Mapping[str, dict[str, Any]] = {
    "prometheus": {"url": "http://a"},
    "scrape": {"targets": "http://a"},
    "influxdb": {"url": "http://a", "database": "b"},
}
_WRONG_IN_SOURCE = re.compile(r"at '/settings/sources/([^/']+)': 'allOf' failed")
_AT = re.compile(
    r"^ *- at '/settings/(?:sources/([a-z0-9-]+)/([a-z0-9_]+)|([a-z0-9_]+))", flags=re.MULTILINE
)
ASCII = st.characters(codec="ascii")


class Place(NamedTuple):
    """One setting: of a kind of source, or, with an empty kind, of the process."""

    kind: str
    key: str


def _forms() -> Iterator[tuple[Place, schema.Part]]:
    """Yield the settings whose texts have a form, with it."""
    written = schema.definitions()
    top = {
        key: part
        for key, part in written["settings"]["properties"].items()
        if key.partition("_")[0] not in sources.KINDS
    }
    parts = {"": top, **{kind: written[f"source-{kind}"]["properties"] for kind in sources.KINDS}}
    for kind, properties in parts.items():
        for key, part in properties.items():
            if "pattern" in part:
                yield Place(kind, key), part


FORMS = dict(_forms())


def _texts(part: schema.Part) -> st.SearchStrategy[Any]:
    """Return texts of a form, texts that nearly have it, any other text, and numbers."""
    if r"\p" in part["pattern"]:
        return st.text(max_size=9) | st.integers(0, 9)
    right = st.from_regex(part["pattern"], fullmatch=True, alphabet=ASCII)
    at = st.tuples(right, st.integers(0, 9), st.text(alphabet=ASCII, max_size=2))
    near = at.map(lambda one: one[0][: one[1]] + one[2] + one[0][one[1] + 1 :])
    choices = [right, near, st.text(alphabet=ASCII, max_size=5), st.integers(-1, 2**40)]
    if "items" in part:
        choices.append(st.lists(right | near | st.just("*") | st.just("a"), max_size=3))
    if "propertyNames" in part:
        names = st.from_regex(forms.HEADER, fullmatch=True, alphabet=ASCII)
        choices.append(st.dictionaries(names | st.text(ASCII, max_size=3), st.text(max_size=3)))
    return st.one_of(choices)


EACH = st.fixed_dictionaries({place: _texts(part) for place, part in FORMS.items()})


def _source(place: Place) -> str:
    return f"{place.kind}-{place.key}".replace("_", "-")


def _values(found: Mapping[Place, object]) -> dict[str, Any]:
    """Return settings with each value, those of sources in a source of their own."""
    own = {place.key: value for place, value in found.items() if not place.kind}
    of_kinds = {
        _source(place): {"type": place.kind, **REQUIRED[place.kind], place.key: value}
        for place, value in found.items()
        if place.kind
    }
    return {**own, "sources": of_kinds}


def _let_through(found: Mapping[Place, object], file: Path) -> dict[Place, object]:
    """Return the values that the schema does not refuse, by the names in what Helm says."""
    file.write_text(yaml.safe_dump({"settings": _values(found)}, allow_unicode=False))
    try:
        charts.template("--values", str(file))
    except subprocess.CalledProcessError as error:
        refused = {(source, key or top) for source, key, top in _AT.findall(error.stderr)}
        # Helm names another place for a wrong name of a header, but the right source above it.
        refused |= {(source, "headers") for source in _WRONG_IN_SOURCE.findall(error.stderr)}
    else:
        refused = set()
    return {
        place: value
        for place, value in found.items()
        if (_source(place) if place.kind else "", place.key) not in refused
    }


def _said(place: Place, value: object, file: Path) -> str:
    """Return what the scaler says of one setting, beside those that it does not go without."""
    partners = {place.key: value}
    if place.key == "username" and value not in {None, ""}:
        partners |= {"password": "x"}
    if place == ("scrape", "timeout"):  # which may not be longer
        partners["interval"] = value
    if place.kind:
        of_kind = {"type": place.kind, **REQUIRED[place.kind], **partners}
        content: dict[str, Any] = {"sources": {"default": of_kind}}
    else:
        content = {"prometheus_url": "http://a", place.key: value}
    file.write_text(yaml.safe_dump(content))
    try:
        load({"KEDA_GPU_SCALER_CONFIG": str(file)})
    except errors.SettingsError as error:
        return f"{place}: {value!r}: {error}"
    return ""


def _is_judged_by_its_text(value: object) -> bool:
    """Leave out patterns, which may not be RE2, and users in URLs, of which the chart says more."""
    return "~" not in str(value) and "@" not in str(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(EACH)
def test_what_the_schema_lets_through_the_scaler_reads(
    tmp_path: Path, found: dict[Place, object]
) -> None:
    let_through = _let_through(found, tmp_path / "values.yaml")
    file = tmp_path / "settings.yaml"
    said = [
        _said(place, value, file)
        for place, value in let_through.items()
        if _is_judged_by_its_text(value)
    ]
    assert [one for one in said if one] == []


USUAL: Mapping[Place, list[object]] = {
    Place("", "demand_interval"): ["1s", "90s", "2m", "1h30m", "1.5h", "1d", "1500ms", ""],
    Place("", "give_up"): ["60s", "90s", "1m30s", "1h", "1h30m", "0.5h", "1d", "2h5s"],
    Place("", "max_concurrent_rpcs"): [1, 5000, "5000"],
    Place("", "other_namespaces"): ["*", "a", "team-a,team-b", "a, b", ["a", "b"], ["*"]],
    Place("", "claims_without_gpus"): ["nic,rdma.example.com", ["nic"]],
    Place("prometheus", "step"): ["15s", "0.5s", "500ms", "1m"],
    Place("prometheus", "collection"): ["0s", "30s", "1h0m"],
    Place("prometheus", "url"): [
        "http://prometheus:9090",
        "https://mimir.example.com/prometheus/",
        "http://[fd00::1]:9090",
        "http://[fd00:1:2::3:4]",
        "http://10.0.0.1:65535",
    ],
    Place("prometheus", "headers"): ["X-Scope-OrgID=a,b=c d", '{"A": "b"}', {"A": "b"}],
    Place("prometheus", "matchers"): ['cluster="eu-1"', 'cluster=~"eu-.+",env!="test"'],
    Place("prometheus", "namespace_parameter"): ["namespace"],
    Place("prometheus", "namespace_header"): ["X-Scope-OrgID"],
    Place("prometheus", "max_response_bytes"): ["64MiB", "1Gi", 1048576],
    Place("scrape", "targets"): [
        "dns+http://dcgm-exporter.gpu:9400/metrics, http://10.0.0.1:9400",
        ["https://a/metrics?collect[]=gpu,mem"],
    ],
    Place("scrape", "namespaces"): ["lab"],
    Place("influxdb", "measurement"): ["{metric}", "gpu", "Größe"],
    Place("influxdb", "username"): ["scaler"],
}


def test_what_is_usual_passes_both(tmp_path: Path, subtests: pytest.Subtests) -> None:
    longest = max(map(len, USUAL.values()))
    for number in range(longest):
        found = {place: texts[number % len(texts)] for place, texts in USUAL.items()}
        with subtests.test(number=number):
            assert _let_through(found, tmp_path / "values.yaml") == found
            said = [_said(*one, tmp_path / "settings.yaml") for one in found.items()]
            assert [one for one in said if one] == []


def test_every_default_passes(tmp_path: Path) -> None:
    defaults = {
        row.key: row.default
        for row in describe()
        if row.default and row.key not in charts.decided() and row.key.split("_")[0] not in REQUIRED
    }
    for kind, needed in REQUIRED.items():
        file = tmp_path / f"{kind}.yaml"
        rows = [row for row in describe() if row.key.startswith(f"{kind}_") and row.default]
        own = {row.key: row.default for row in rows}
        own |= {f"{kind}_{key}": value for key, value in needed.items()}
        file.write_text(yaml.safe_dump({"settings": {**defaults, **own}}))
        assert charts.template("--values", str(file))


def test_a_number_is_written_so_that_the_scaler_reads_it(tmp_path: Path) -> None:
    """Also one that Go would write with an exponent."""
    largest = schema.definitions()["settings"]["properties"]["max_concurrent_rpcs"]["maximum"]
    file, values = tmp_path / "settings.yaml", tmp_path / "values.yaml"
    for number in (1_000_000, 123_456_789, largest):
        values.write_text(yaml.safe_dump({"settings": {"max_concurrent_rpcs": number}}))
        made = charts.objects(charts.template("--values", str(values)))
        (text,) = (one["data"]["settings.yaml"] for one in made if one["kind"] == "ConfigMap")
        file.write_text(text)
        assert load({"KEDA_GPU_SCALER_CONFIG": str(file)}).max_concurrent_rpcs == number
    assert "max_concurrent_rpcs': maximum: got 2.147483648" in charts.refusal(
        f"--set=settings.max_concurrent_rpcs={largest + 1}"
    )


def test_every_setting_has_a_form_unless_it_is_a_file_or_a_secret() -> None:
    models: list[type[BaseModel]] = [process.Settings, *sources.KINDS.values()]
    loose = {
        key
        for model in models
        for key, field in schema.fields(model)
        if key not in charts.decided() | {"config"}
        and forms.of(field).keys() == {"type"}
        and not key.endswith("_file")
    }
    secrets = ("bearer_token", "password")
    assert loose == {f"{of}{key}" for of in ("", "prometheus_", "influxdb_") for key in secrets}


class _Access(Enum):
    READ = "read"
    WRITE = "write"


def test_words_of_a_few_are_a_choice_also_where_none_has_to_be_given() -> None:
    class Model(BaseModel):
        access: _Access | None = None
        way: Literal["in", "out"] = "in"

    fields = Model.model_fields
    assert forms.of(fields["access"]) == {"enum": ["read", "write"]}
    assert forms.of(fields["way"]) == {"enum": ["in", "out"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("prometheus_step=15", "at '/settings/prometheus_step': got number, want string"),
        ("prometheus_url=prometheus:9090", "'prometheus:9090' does not match pattern"),
        ("max_concurrent_rpcs=many", "at '/settings/max_concurrent_rpcs': 'many' does not match"),
        ("prometheus_step=0.05s", "at '/settings/prometheus_step': '0.05s' does not match"),
        ("give_up=59s", "at '/settings/give_up': '59s' does not match pattern"),
        ("sources.Edge.type=scrape", "invalid propertyName 'Edge'"),
        ("prometheus_namespace_parameter=query", "at '/settings/prometheus_namespace_parameter'"),
    ],
)
def test_a_setting_that_the_scaler_would_refuse_is_refused_by_its_name(
    value: str, message: str
) -> None:
    assert message in charts.refusal("--set", f"settings.{value}")
