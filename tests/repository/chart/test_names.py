"""Names of values: those of other charts are refused with ours, and old ones work for a release."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.chart import charts, comments

OURS = {one.path for one in comments.values()}
OLD: dict[str, Any] = {
    "prometheusUrl": "https://prometheus.example.com",
    "env": [{"name": "A", "value": "a"}],
    "envFrom": [{"configMapRef": {"name": "more"}}],
    "kubernetesEvidence": {"enabled": True},
}
NEW: dict[str, Any] = {
    "prometheus": {"url": "https://prometheus.example.com"},
    "extraEnv": [{"name": "A", "value": "a"}],
    "extraEnvFrom": [{"configMapRef": {"name": "more"}}],
    "kubernetesApi": {"enabled": True},
}


def _nested(path: str, value: object) -> dict[str, Any]:
    for step in reversed(path.split(".")):
        value = {step: value}
    assert isinstance(value, dict)
    return value


def _flags(file: Path, *values: dict[str, Any]) -> tuple[str, ...]:
    """Write each of several values into a file of its own, and return the flags that name them."""
    flags: list[str] = []
    for number, one in enumerate(values):
        path = file.with_name(f"{number}-{file.name}")
        path.write_text(yaml.safe_dump(one))
        flags += ["--values", str(path)]
    return tuple(flags)


def _is_ours(name: str) -> bool:
    return any(path == name or path.startswith(f"{name}.") for path in OURS)


@pytest.mark.needs("helm")
@pytest.mark.parametrize("guess", [True, "x", ["x"], {"enabled": True}], ids=str)
def test_every_name_of_another_chart_is_refused_with_what_to_set(
    guess: object, tmp_path: Path
) -> None:
    """Whatever its value is, and all of them at once."""
    given = [_nested(path, guess) for path in charts.guesses()]
    told = charts.refusal(*_flags(tmp_path / "values.yaml", *given))
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


@pytest.mark.needs("helm")
def test_old_names_mean_what_the_new_ones_mean(tmp_path: Path) -> None:
    old = charts.template(*_flags(tmp_path / "old.yaml", OLD))
    new = charts.template(*_flags(tmp_path / "new.yaml", NEW))
    assert old == new
    assert new != charts.template()
    assert OLD.keys() == charts.renamed().keys()
    assert NEW.keys() == {path.partition(".")[0] for path in charts.renamed().values()}


@pytest.mark.needs("helm")
def test_a_prometheus_under_both_names_is_refused_unless_it_is_the_same() -> None:
    flags = ("--set=prometheusUrl=http://a:9090", "--set=prometheus.url=http://{}:9090")
    told = charts.refusal(flags[0], flags[1].format("b"))
    assert "prometheusUrl is the old name of prometheus.url, and both are set" in told
    assert "http://a:9090" in charts.template(flags[0], flags[1].format("a"))
    default = yaml.safe_load(comments.VALUES.read_text())["prometheus"]["url"]
    assert "http://a:9090" in charts.template(flags[0], f"--set=prometheus.url={default}")
