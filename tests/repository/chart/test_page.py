"""What the page about the chart shows works as it stands."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.repository.chart import charts, regenerate
from tests.support.triggers import access

PAGE = regenerate.PAGE.read_text()
BLOCKS = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
VALUES = [one for one in BLOCKS if "kind" not in one]
OUTPUTS = re.findall(r"```console\n\$ helm (.*?)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    line for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in text.splitlines()
]


@pytest.mark.needs("helm", "kubectl")
@pytest.mark.parametrize("values", VALUES, ids="-".join)
def test_values_on_the_page_are_taken(values: object, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    assert charts.template("--values", str(file))


@pytest.mark.needs("helm", "kubectl")
def test_the_scaled_object_on_the_page_is_for_what_the_chart_makes() -> None:
    (document,) = (one for one in BLOCKS if one.get("kind") == "ScaledObject")
    (external,) = document["spec"]["triggers"]
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    assert not trigger.parse(named, external["metadata"], access()).warnings
    made = charts.rendered("mtls")
    for name in (external["authenticationRef"]["name"], external["metadata"]["scalerAddress"]):
        assert name in made


@pytest.mark.needs("helm", "kubectl")
@pytest.mark.parametrize(("words", "output"), OUTPUTS, ids=[words for words, _ in OUTPUTS])
def test_refusals_are_those_that_the_page_shows(words: str, output: str) -> None:
    _, release, _, *flags = shlex.split(words)
    told = charts.refusal(*flags, release=release)
    assert [line.rstrip() for line in told.rstrip().splitlines()] == output.splitlines()


@pytest.mark.needs("helm", "kubectl")
def test_the_overlay_on_the_page_can_be_built(tmp_path: Path) -> None:
    (overlay,) = (one for one in BLOCKS if one.get("kind") == "Kustomization")
    (tmp_path / "deploy").symlink_to(charts.ROOT / "deploy")
    folder = tmp_path / "overlay"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    (folder / "settings.yaml").write_text("log_level: debug\n")
    built = charts.objects(charts.kustomized(folder))
    (deployment,) = (one for one in built if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith(f"{overlay['images'][0]['newName']}:")
    assert "ClusterRole" in {one["kind"] for one in built}


def test_commands_name_the_chart_and_the_base_where_they_are() -> None:
    named = {word for line in COMMANDS for word in shlex.split(line) if word.startswith("deploy/")}
    assert named == {str(path.relative_to(charts.ROOT)) for path in (charts.CHART, charts.BASE)}
