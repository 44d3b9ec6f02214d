"""The page on `check` has every rule, every limit, and what the command prints."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from typer.testing import CliRunner

from keda_gpu_scaler import __version__, cli
from keda_gpu_scaler.check import FINDINGS_LIMIT, documents
from keda_gpu_scaler.check.findings import Severity
from keda_gpu_scaler.check.rules import RULES
from keda_gpu_scaler.cli.check import FailOn, Output
from tests.check.cases import STAYS, changed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
SHOWN = changed(STAYS, ("minReplicaCount: 1", "minReplicaCount: 0"), ("70", "95"))


def test_the_table_has_every_rule_with_its_severity_and_meaning() -> None:
    section = PAGE.partition("## Rules")[2]
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(one.name, one.severity.value, one.meaning) for one in RULES.values()]


def test_each_severity_output_and_threshold_is_explained() -> None:
    assert re.findall(r"^\| `(\w+)` \| (?!error|warning|note)", PAGE, re.MULTILINE) == list(
        Severity
    )
    assert set(re.findall(r"--output (\w+)", PAGE)) == set(get_args(Output)) - {"text"}
    (sentence,) = re.findall(r"`--fail-on` \((.+?)\)", PAGE)
    assert set(re.findall(r"`(\w+)`", sentence)) == set(get_args(FailOn))


def test_the_findings_that_are_shown_are_what_is_printed(tmp_path: Path) -> None:
    (block,) = re.findall(r"```console\n\$ (.+?)\n(.+?)```", PAGE, re.DOTALL)
    path = tmp_path / "scaledobject.yaml"
    path.write_text(SHOWN, encoding="utf-8")
    printed = CliRunner().invoke(cli.app, ["check", str(path)]).output
    assert block == (
        "keda-gpu-scaler check scaledobject.yaml",
        printed.replace(str(path), path.name),
    )


@pytest.mark.parametrize(
    "said",
    [
        f"{documents.BYTES_LIMIT >> 20} MiB, {documents.VALUES_LIMIT:,} values and",
        f"{documents.DEPTH_LIMIT} levels",
        f"{FINDINGS_LIMIT:,} findings",
    ],
)
def test_the_limits_are_those_of_the_code(said: str) -> None:
    assert said in " ".join(PAGE.split())


def test_the_hook_that_is_offered_is_the_one_that_is_shown() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (shown,) = re.findall(r"```yaml\n(repos:.+?)```", PAGE, re.DOTALL)
    (repository,) = yaml.safe_load(shown)["repos"]
    assert repository["hooks"] == [{"id": hook["id"]}]
    assert repository["rev"] == f"v{__version__}"
    program, command = hook["entry"].split()
    assert program == "keda-gpu-scaler"
    assert command in cli.COMMANDS
