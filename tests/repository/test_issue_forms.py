"""The forms for issues have what the forge wants, and ask for commands that there are."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from tests.repository.test_docs import ROOT

FOLDER = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in FOLDER.glob("*.yml") if path.name != "config.yml")
FIELDS = {"textarea", "input", "dropdown"}

every_form = pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)


def form(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text())
    return read


@every_form
def test_a_form_has_fields_that_are_told_apart(path: Path) -> None:
    read = form(path)
    assert read.keys() == {"name", "description", "labels", "body"}
    fields = read["body"]
    assert {field["type"] for field in fields} <= FIELDS
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)


@every_form
def test_a_command_that_a_form_asks_for_is_there_with_its_options(path: Path) -> None:
    asked = re.findall(r"`keda-gpu-scaler ([a-z]+)([^`]*)`", path.read_text())
    assert asked
    for command, words in asked:
        shown = CliRunner().invoke(cli.app, [command, "--help"]).output
        assert [option for option in re.findall(r"--[a-z-]+", words) if option not in shown] == []


def test_links_of_the_chooser_lead_to_files_of_this_repository() -> None:
    links = [link["url"] for link in form(FOLDER / "config.yml")["contact_links"]]
    files = [found for url in links for found in re.findall(r"/blob/main/(.+)$", url)]
    assert files
    assert [name for name in files if not (ROOT / name).is_file()] == []
