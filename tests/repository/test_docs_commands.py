"""The page on commands shows what the command line itself says, and what a probe answers."""

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from keda_gpu_scaler.cli.probe import CLOSED_PLAINTEXT, CLOSED_TLS, MEANINGS, TOO_LATE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


def shown_help(*names: str) -> str:
    """Return what a command says of itself, as on a terminal of 80 columns."""
    result = CliRunner(env={"COLUMNS": "80"}).invoke(
        cli.app, [*names, "--help"], prog_name="keda-gpu-scaler"
    )
    return "\n".join(line.rstrip() for line in result.output.splitlines())


def block(command: str) -> str:
    """Return the output that the page shows below a command."""
    (found,) = re.findall(
        rf"^```console\n\$ {re.escape(command)}\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL
    )
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("names", [(), *((name,) for name in cli.COMMANDS)])
def test_every_command_is_there_with_every_option(names: tuple[str, ...]) -> None:
    assert block(" ".join(["keda-gpu-scaler", *names, "--help"])) == shown_help(*names)


def test_every_command_has_a_heading_of_its_own() -> None:
    assert re.findall(r"^## (\S+)$", PAGE, re.MULTILINE) == list(cli.COMMANDS)


def test_everything_that_a_probe_says_of_a_connection_is_explained() -> None:
    explained = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
    said = [*MEANINGS.values(), CLOSED_TLS, CLOSED_PLAINTEXT, TOO_LATE]
    assert set(said) <= set(explained)


def test_a_service_that_is_forwarded_has_that_port() -> None:
    text = (ROOT / "deploy" / "kustomize" / "service.yaml").read_text(encoding="utf-8")
    ports = {
        (service["metadata"]["name"], str(port["port"]))
        for service in yaml.safe_load_all(text)
        for port in service["spec"]["ports"]
    }
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "keda_gpu_scaler").rglob("*.py")]
    forwarded = {
        found
        for page in pages
        for found in re.findall(
            r"port-forward.* (?:svc|service)/(keda-gpu-scaler[a-z-]*) (?:[0-9]*:)?([0-9]+)",
            page.read_text(encoding="utf-8"),
        )
    }
    assert forwarded
    assert forwarded <= ports
