"""Names of values: those of other charts are refused with ours, and old ones work for a release."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repository.chart import charts, comments

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


def test_every_setting_that_a_hint_names_exists() -> None:
    schema = (charts.CHART / "values.schema.json").read_text()
    words = {word.strip(",;") for hint in charts.guesses().values() for word in hint.split()}
    settings = {word.removeprefix("settings.") for word in words if word.startswith("settings.")}
    assert settings == {"log_level", "log_format"}
    assert [one for one in settings if f'"{one}": {{' not in schema] == []


@pytest.mark.needs("helm")
def test_old_names_mean_what_the_new_ones_mean(tmp_path: Path) -> None:
    old = charts.template(*_flags(tmp_path / "old.yaml", OLD))
    new = charts.template(*_flags(tmp_path / "new.yaml", NEW))
    assert old == new
    assert new != charts.template()
    assert OLD.keys() == charts.renamed().keys()
    assert NEW.keys() == {path.partition(".")[0] for path in charts.renamed().values()}


@pytest.mark.needs("helm")
def test_a_variable_under_the_old_name_and_the_new_one_is_refused(tmp_path: Path) -> None:
    both = {"env": OLD["env"], "extraEnv": NEW["extraEnv"]}
    told = charts.refusal(*_flags(tmp_path / "values.yaml", both))
    assert "- env is the old name of extraEnv, and both have A: leave it out of env\n" in told
    other = {"env": OLD["env"], "extraEnv": [{"name": "B", "value": "b"}]}
    assert charts.template(*_flags(tmp_path / "values.yaml", other))


@pytest.mark.needs("helm")
def test_an_upgrade_with_old_names_keeps_every_object_and_what_its_pods_run(tmp_path: Path) -> None:
    """Beside the chart as it was before the renaming, which a scenario upgrades on a cluster."""
    flags = (*charts.IMAGE, *_flags(tmp_path / "old.yaml", OLD))
    where = ("--namespace", charts.NAMESPACE, "--kube-version", charts.KUBE_VERSION)
    old_chart = charts.ROOT / "tests/data/chart/keda-gpu-scaler-old-names.tgz"
    text = charts.run("helm", "template", charts.RELEASE, str(old_chart), *where, *flags)
    before, after = (_by_name(one) for one in (text, charts.template(*flags)))
    assert before.keys() == after.keys()
    name = ("Deployment", charts.RELEASE)
    deployments = before.pop(name), after.pop(name)
    pods = [deployment["spec"]["template"] for deployment in deployments]
    for pod in pods:  # the kubelet asks another port since then
        for probe in ("startupProbe", "livenessProbe"):
            del pod["spec"]["containers"][0][probe]
    assert pods[0] == pods[1]
    # `helm test` asks what the scaler of its own version offers; its pod is there for seconds.
    test = ("Pod", f"{charts.RELEASE}-test")
    assert before.pop(test)["spec"].keys() == after.pop(test)["spec"].keys()
    assert before == after


def _by_name(manifests: str) -> dict[tuple[str, str], charts.Object]:
    return {(one["kind"], one["metadata"]["name"]): one for one in charts.objects(manifests)}


@pytest.mark.needs("helm")
def test_lists_under_both_names_are_one_list(tmp_path: Path) -> None:
    both = {"env": [{"name": "A", "value": "a"}], "extraEnv": [{"name": "B", "value": "b"}]}
    made = charts.objects(charts.template(*_flags(tmp_path / "both.yaml", both)))
    (deployment,) = (one for one in made if one["kind"] == "Deployment")
    *_, first, second = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert (first["name"], second["name"]) == ("A", "B")


@pytest.mark.needs("helm")
def test_a_prometheus_under_both_names_is_refused_unless_it_is_the_same() -> None:
    flags = ("--set=prometheusUrl=http://a:9090", "--set=prometheus.url=http://{}:9090")
    told = charts.refusal(flags[0], flags[1].format("b"))
    assert "prometheusUrl is the old name of prometheus.url, and both are set" in told
    assert "http://a:9090" in charts.template(flags[0], flags[1].format("a"))
    default = yaml.safe_load(comments.VALUES.read_text())["prometheus"]["url"]
    assert "http://a:9090" in charts.template(flags[0], f"--set=prometheus.url={default}")


@pytest.mark.needs("helm")
@pytest.mark.parametrize("old", charts.renamed())
def test_the_notes_warn_of_an_old_name_and_of_no_other(old: str, tmp_path: Path) -> None:
    told = charts.notes(*_flags(tmp_path / "old.yaml", {old: OLD[old]}))
    _, _, warning = told.partition("WARNING: these values have their old names")
    assert warning.splitlines()[1:] == [f"- {old} is now {charts.renamed()[old]}"]
    assert "WARNING" not in charts.notes()


@pytest.mark.needs("helm")
def test_a_label_of_the_chart_s_own_is_no_label_of_a_value() -> None:
    for value in ("commonLabels", "service.labels", "service.http.labels", "serviceAccount.labels"):
        told = charts.refusal("--set-string", rf"{value}.app\.kubernetes\.io/version=1")
        assert f"{value} has app.kubernetes.io/version, which the chart sets itself" in told


@pytest.mark.needs("helm")
@pytest.mark.parametrize("value", ["extraContainers", "initContainers"])
def test_another_container_has_another_name(value: str) -> None:
    told = charts.refusal("--set", f"{value}[0].name=scaler")
    assert f"{value} has a container called scaler, as the chart's own is" in told
