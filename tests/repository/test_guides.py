"""The step-by-step pages, as far as they can be checked without a cluster."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler import __version__, trigger
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from tests.support import guides, printed
from tests.support.triggers import access

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
PAGES = (*guides.TRANSLATED, "troubleshooting")
BUILDS_AN_IMAGE = ("docker build", "kind load")
"""Commands that no test can run without a container engine."""

every_page = pytest.mark.parametrize("name", PAGES)
every_translation = pytest.mark.parametrize(
    ("name", "language"),
    [(name, language) for name in guides.TRANSLATED for language in guides.LANGUAGES[1:]],
)


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((QUICKSTART / f"{name}.yaml").read_text()))


def found(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (one,) = [each for each in objects if each["kind"] == kind]
    return one


def accepted(scaled_object: dict[str, Any]) -> TriggerSpec:
    """Return the trigger of ours that a ScaledObject has, as the scaler reads it."""
    named = ScaledObject(**{key: scaled_object["metadata"][key] for key in ("namespace", "name")})
    (ours,) = [
        each["metadata"]
        for each in scaled_object["spec"]["triggers"]
        if each["type"] in {"external", "external-push"}
    ]
    return trigger.parse(named, ours, access())


@every_page
def test_a_page_has_steps_and_shows_what_they_print(name: str) -> None:
    steps = guides.steps(guides.page(name))
    assert len(steps) >= 9
    assert sum(step.output is not None for step in steps) >= len(steps) // 2


@every_page
def test_every_block_is_something_to_type_or_what_it_prints(name: str) -> None:
    for language in guides.LANGUAGES if name in guides.TRANSLATED else guides.LANGUAGES[:1]:
        text = guides.page(name, language).read_text()
        assert set(re.findall(r"^```(\w*)$", text, re.MULTILINE)) == {"sh", "text", ""}
        assert not re.search(r"^ {4,}(?:kubectl|helm|curl)", text, re.MULTILINE)


@pytest.mark.parametrize("name", guides.TRANSLATED)
def test_nothing_but_the_image_is_left_out_of_the_test(name: str) -> None:
    for step in guides.steps(guides.page(name)):
        if step.is_(guides.NOT_RUN):
            assert all(line.startswith(BUILDS_AN_IMAGE) for line in step.commands.splitlines())


def test_a_symptom_that_no_test_brings_about_shows_no_output() -> None:
    steps = guides.steps(guides.page("troubleshooting"))
    left_out = [step for step in steps if step.is_(guides.NOT_RUN)]
    assert left_out
    assert [step.output for step in left_out if step.output is not None] == []


@every_page
def test_an_image_is_built_from_a_file_that_is_there(name: str) -> None:
    commands = [step.commands for step in guides.steps(guides.page(name))]
    for line in "".join(commands).splitlines():
        if line.startswith("docker build"):
            (file,) = re.findall(r"--file (\S+)", line)
            assert (ROOT / file).is_file()


@every_page
def test_no_block_is_empty_and_no_output_is_left_out_as_a_whole(name: str) -> None:
    for language in guides.LANGUAGES if name in guides.TRANSLATED else guides.LANGUAGES[:1]:
        for step in guides.steps(guides.page(name, language)):
            assert step.commands.strip()
            assert step.output is None or step.output.replace(printed.ANY, "").strip()


def test_lines_of_the_log_are_json_as_the_commands_of_the_pages_expect() -> None:
    (values,) = documents("values")
    assert "log_format" not in values["settings"]
    for path in guides.DOCS.glob("quickstart*.md"):
        assert "log_format" not in path.read_text()


@every_page
def test_a_remark_is_one_that_a_reader_knows(name: str) -> None:
    for step in guides.steps(guides.page(name)):
        kinds = {remark.kind for remark in step.remarks}
        assert kinds <= {guides.NOT_RUN, guides.STAYS_OPEN, guides.SCENE, guides.FAILS}


@every_translation
def test_a_translation_has_the_same_steps(name: str, language: str) -> None:
    def said(path: Path) -> list[tuple[str, tuple[guides.Remark, ...], str | None]]:
        return [(step.commands, step.remarks, step.output) for step in guides.steps(path)]

    assert said(guides.page(name, language)) == said(guides.page(name))


@every_translation
def test_a_translation_has_the_same_sections_and_files(name: str, language: str) -> None:
    def counted(path: Path) -> tuple[int, list[str]]:
        text = path.read_text()
        files = re.findall(r"\]\((\.\./[^)]+)\)", text)
        return len(re.findall(r"^## ", text, re.MULTILINE)), sorted(files)

    assert counted(guides.page(name, language)) == counted(guides.page(name))


def test_every_file_of_the_quick_start_is_used_by_it() -> None:
    commands = "".join(step.commands for step in guides.steps(guides.page("quickstart")))
    for path in QUICKSTART.iterdir():
        assert str(path.relative_to(ROOT)) in commands


def test_the_image_has_the_version_of_this_checkout() -> None:
    image = f"keda-gpu-scaler:{__version__}"
    container = found(documents("simulator"), "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    assert [each["image"] for each in container] == [image]
    for language in guides.LANGUAGES:
        build, *_ = guides.steps(guides.page("quickstart", language))
        assert build.commands.count(image) == 2


def test_the_scaled_object_of_the_quick_start_is_accepted_without_a_warning() -> None:
    (scaled_object,) = documents("scaledobject")
    read = accepted(scaled_object)
    (workload,) = documents("workload")
    assert read.warnings == ()
    assert read.workload == f"deployment/{workload['metadata']['name']}"
    assert scaled_object["spec"]["scaleTargetRef"]["name"] == workload["metadata"]["name"]


def test_the_scaled_object_of_the_quick_start_with_dcgm_exporter_is_accepted() -> None:
    commands = [step.commands for step in guides.steps(guides.page("quickstart-dcgm"))]
    (manifest,) = [
        re.search(r"<<'YAML'\n(.*?)\nYAML\n", each, re.DOTALL)
        for each in commands
        if "<<'YAML'" in each
    ]
    assert manifest is not None
    read = accepted(yaml.safe_load(manifest[1]))
    assert read.warnings == ()
    assert read.demand is not None


def test_scaler_trigger_and_router_are_where_the_simulator_is() -> None:
    service = found(documents("simulator"), "Service")
    metadata, (port,) = service["metadata"], service["spec"]["ports"]
    address = f"http://{metadata['name']}.{metadata['namespace']}.svc:{port['port']}"
    (values,), (scaled_object,) = documents("values"), documents("scaledobject")
    assert values["settings"]["sources"]["default"]["targets"] == address
    router = scaled_object["spec"]["triggers"][1]["metadata"]
    assert router["url"] == f"{address}/router/metrics"
    assert metadata["namespace"] in router["valueLocation"]
