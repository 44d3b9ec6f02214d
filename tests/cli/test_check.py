"""`keda-gpu-scaler check`: files, folders and the standard input in, findings and a status out."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from tests.check.cases import text

ERROR, WARNING, NOTE = (
    text(rule, "fail") for rule in ("unknown-key", "cached-metrics", "no-maximum")
)
CLEAN = text("unknown-key")


def run(*arguments: object, given: bytes | str | None = None) -> Result:
    return CliRunner().invoke(cli.app, ["check", *map(str, arguments)], input=given)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with contextlib.chdir(tmp_path):
        yield tmp_path


def test_findings_say_where_what_why_and_how(folder: Path) -> None:
    (folder / "one.yaml").write_text(ERROR)
    result = run("one.yaml")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        'one.yaml:17:9: error unknown-key: The scaler refuses "tresholdd": unknown key',
        "    in ScaledObject inference/bert",
        "    Did you mean threshold?",
        "1 object of KEDA's checked: 1 error, 0 warnings, 0 notes",
    ]


def test_a_finding_about_a_text_names_no_object() -> None:
    assert run("-", given="a: [").output.splitlines() == [
        "-:1:1: error yaml-syntax: did not find expected node content",
        "    Correct the YAML; of a chart, check what helm template prints.",
        "0 objects of KEDA's checked: 1 error, 0 warnings, 0 notes",
    ]


def test_a_clean_file_is_counted(folder: Path) -> None:
    (folder / "one.yaml").write_text(f"{CLEAN}---\n{text('scaled-job')}")
    result = run("one.yaml")
    assert (result.exit_code, result.output) == (
        0,
        "2 objects of KEDA's checked: 0 errors, 0 warnings, 0 notes\n",
    )


def test_a_long_line_is_not_broken_and_a_rewritten_trigger_follows(folder: Path) -> None:
    (folder / "one.yaml").write_text(text("average-recipe", "fail"))
    first, *_, last_of_trigger, _ = run("one.yaml").output.splitlines()
    assert first.endswith("as KEDA takes no data for 0")
    assert last_of_trigger == '        window: "5m"'


@pytest.mark.parametrize(
    ("given", "statuses"),
    [
        (ERROR, {"error": 1, "warning": 1, "note": 1, "never": 0}),
        (WARNING, {"error": 0, "warning": 1, "note": 1, "never": 0}),
        (NOTE, {"error": 0, "warning": 0, "note": 1, "never": 0}),
        (CLEAN, {"error": 0, "warning": 0, "note": 0, "never": 0}),
    ],
)
def test_the_status_is_for_ci(given: str, statuses: dict[str, int]) -> None:
    assert run("-", given=given).exit_code == statuses["error"]
    for least, status in statuses.items():
        assert run("-", "--fail-on", least, given=given).exit_code == status


def test_rules_can_be_left_out() -> None:
    assert run("-", "--ignore", "unknown-key", given=ERROR).exit_code == 0
    result = run("-", "--ignore", "unknown-keys", given=ERROR)
    assert result.exit_code == 2
    assert "there is no rule 'unknown-keys': did you mean 'unknown-key'?" in result.output


def test_a_folder_is_read_without_what_is_hidden_and_the_templates_of_charts(
    folder: Path,
) -> None:
    for name in ("b.yml", "a.yaml", "sub/c.yaml", ".git/d.yaml", "notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(ERROR)
    (folder / "chart" / "templates").mkdir(parents=True)
    (folder / "chart" / "Chart.yaml").write_text("name: x\n")
    (folder / "chart" / "templates" / "x.yaml").write_text("{{ x }}")
    (folder / "plain" / "templates").mkdir(parents=True)
    (folder / "plain" / "templates" / "x.yaml").write_text(WARNING)
    shown = json.loads(run(".", "--output", "json").output)
    assert [one["file"] for one in shown["findings"]] == [
        "a.yaml",
        "b.yml",
        "plain/templates/x.yaml",
        "sub/c.yaml",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.yaml", "No such file"),
        ("empty", "empty has no *.yaml and no *.yml"),
        ("latin.yaml", "latin.yaml is not in UTF-8: invalid continuation byte at byte 3"),
    ],
)
def test_what_cannot_be_read_is_no_finding(folder: Path, name: str, said: str) -> None:
    (folder / "empty").mkdir()
    (folder / "latin.yaml").write_bytes(b"a: \xe9t\xe9\n")
    (folder / "good.yaml").write_text(CLEAN)
    result = run("good.yaml", name)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", "").split())


def test_a_byte_order_mark_is_passed_over() -> None:
    assert run("-", given=b"\xef\xbb\xbf" + CLEAN.encode()).exit_code == 0


def test_a_file_that_is_too_large_is_refused_with_a_finding(folder: Path) -> None:
    with (folder / "large.yaml").open("wb") as file:
        file.truncate(1 << 34)
    result = run("large.yaml", "--output", "github")
    assert result.exit_code == 1
    assert result.output.startswith("::error file=large.yaml,line=1,col=1,title=too-large::")


def test_github_is_told_nothing_where_nothing_is_found() -> None:
    result = run("-", "--output", "github", given=CLEAN)
    assert (result.exit_code, result.output) == (0, "")


def test_sarif_is_json() -> None:
    log = json.loads(run("-", "--output", "sarif", given=WARNING).output)
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "cached-metrics"


def test_objects_without_a_namespace_are_in_the_named_one() -> None:
    bare = ERROR.replace("  namespace: inference\n", "")
    assert "in ScaledObject default/bert" in run("-", given=bare).output
    assert "in ScaledObject ml/bert" in run("-", "--namespace", "ml", given=bare).output


def test_triggers_of_the_named_scaler_alone_are_checked() -> None:
    other = "gpu.example.com:6000"
    assert run("-", "--scaler", other, given=ERROR).exit_code == 0
    assert run("-", "--scaler", "keda-gpu-scaler.keda.svc:6000", given=ERROR).exit_code == 1


def test_the_longest_request_is_a_duration() -> None:
    shorter = text("short-grace")
    bare = shorter.replace("    keda-gpu-scaler/longest-request: 2m\n", "    a: b\n")
    warned = ("-", "--fail-on", "warning", "--longest-request")
    assert run(*warned, "2m", given=bare).exit_code == 0
    assert run(*warned, "3m", given=bare).exit_code == 1
    result = run(*warned, "120", given=bare)
    assert result.exit_code == 2
    assert "a number needs a unit" in result.output


def test_a_pipe_gets_no_colour() -> None:
    command = [sys.executable, "-m", "keda_gpu_scaler", "check", "-"]
    done = subprocess.run(command, input=ERROR.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"\x1b" not in done.stdout
    assert done.stdout.startswith(b"-:17:9: error unknown-key: ")


def test_of_a_folder_what_is_no_file_is_left_out(folder: Path) -> None:
    (folder / "one.yaml").write_text(ERROR)
    os.mkfifo(folder / "pipe.yaml")
    os.mkfifo(folder / "Kustomization")
    (folder / "gone.yaml").symlink_to(folder / "nowhere")
    assert run(folder).output.count("unknown-key") == 1


PATCH = """apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: bert
spec:
  maxReplicaCount: 20
"""


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
@pytest.mark.parametrize(
    "named",
    [
        "patches:\n  - path: ./patches/bert.yaml\n  - patch: '- op: remove'\n",
        "patchesStrategicMerge:\n  - patches/bert.yaml\n  - [a]\n",
        "patchesJson6902:\n  - path: patches/bert.yaml\n",
    ],
)
def test_patches_of_kustomize_are_left_out_of_its_folder(
    folder: Path, name: str, named: str
) -> None:
    overlay = folder / "overlay"
    (overlay / "patches").mkdir(parents=True)
    (overlay / "patches" / "bert.yaml").write_text(PATCH)
    (overlay / "other.yaml").write_text(ERROR)
    assert run(overlay).output.count("missing-field") == 2
    (overlay / name).write_text(named)
    output = run(overlay).output
    assert "missing-field" not in output
    assert output.count("unknown-key") == 1
    assert run(overlay / "patches" / "bert.yaml").output.count("missing-field") == 2
