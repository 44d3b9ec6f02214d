"""`keda-gpu-scaler check`: files, folders and the standard input in, findings and a status out."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from keda_gpu_scaler.workbench.check import FINDINGS_LIMIT
from tests.workbench.check.cases import FAILS, STAYS

ERROR, WARNING, NOTE = (FAILS[rule] for rule in ("unknown-key", "cached-metrics", "no-maximum"))


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
        "checked 1 KEDA object: 1 error, 0 warnings, 0 notes",
    ]


@pytest.mark.parametrize(
    ("given", "failing"),
    [
        (ERROR, ["error", "warning", "note"]),
        (WARNING, ["warning", "note"]),
        (NOTE, ["note"]),
        (STAYS, []),
    ],
)
def test_the_status_is_for_ci(given: str, failing: list[str]) -> None:
    assert run("-", given=given).exit_code == ("error" in failing)
    for least in ("error", "warning", "note", "never"):
        assert run("-", "--fail-on", least, given=given).exit_code == (least in failing)


def test_rules_can_be_left_out() -> None:
    assert run("-", "--ignore", "unknown-key", given=ERROR).exit_code == 0
    result = run("-", "--ignore", "unknown-keys", given=ERROR)
    assert result.exit_code == 2
    assert "there is no rule 'unknown-keys'; expected one of yaml-syntax, " in result.output


def test_of_a_folder_each_yaml_is_read(folder: Path) -> None:
    """Hidden folders, the templates of charts and what is no file are left out."""
    for name in ("b.yml", "a.yaml", "a\udcff.yaml", "sub/c.yaml", ".git/d.yaml", "notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(ERROR)
    (folder / "chart" / "templates").mkdir(parents=True)
    (folder / "chart" / "Chart.yaml").write_text("name: x\n")
    (folder / "chart" / "templates" / "x.yaml").write_text("{{ x }}")
    (folder / "plain" / "templates").mkdir(parents=True)
    (folder / "plain" / "templates" / "x.yaml").write_text(WARNING)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "gone.yaml").symlink_to(folder / "nowhere")
    (shown,) = json.loads(run(".", "--output", "sarif").output)["runs"]
    (locations,) = zip(*(result["locations"] for result in shown["results"]), strict=True)
    assert [each["physicalLocation"]["artifactLocation"]["uri"] for each in locations] == [
        "a.yaml",
        "a%FF.yaml",
        "b.yml",
        "plain/templates/x.yaml",
        "sub/c.yaml",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.yaml", "No such file"),
        ("empty", "empty has no *.yaml or *.yml"),
        ("latin.yaml", "latin.yaml is not in UTF-8: invalid continuation byte at byte 3"),
    ],
)
def test_what_cannot_be_read_is_no_finding(folder: Path, name: str, said: str) -> None:
    (folder / "empty").mkdir()
    (folder / "latin.yaml").write_bytes(b"a: \xe9t\xe9\n")
    (folder / "good.yaml").write_text(STAYS)
    result = run("good.yaml", name)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", "").split())


@pytest.mark.parametrize("given", ["", "kind: ConfigMap\n", "kind: TriggerAuthentication\n"])
def test_where_there_is_nothing_to_check_the_status_says_so(given: str) -> None:
    result = run("-", "--fail-on", "never", given=given)
    assert result.exit_code == 2
    assert "keda-gpu-scaler: -: no ScaledObject and no ScaledJob to check" in result.stderr
    assert run("-", "--allow-none", given=given).exit_code == 0


def test_a_byte_order_mark_is_passed_over() -> None:
    assert run("-", given=b"\xef\xbb\xbf" + STAYS.encode()).exit_code == 0


def test_a_file_that_is_too_large_is_refused_with_a_finding(folder: Path) -> None:
    with (folder / "large.yaml").open("wb") as file:
        file.truncate(1 << 34)
    result = run("large.yaml")
    assert result.exit_code == 1
    assert result.output.startswith("large.yaml:1:1: error too-large: ")


def test_it_says_that_it_stopped() -> None:
    numbers = [f"        number{number}: 1\n" for number in range(FINDINGS_LIMIT)]
    result = run("-", "--output", "json", given=STAYS + "".join(numbers))
    assert result.exit_code == 1
    assert len(json.loads(result.stdout)["findings"]) == FINDINGS_LIMIT
    assert result.stderr == "keda-gpu-scaler: stopped after 1,000 findings\n"
    assert run("-", given=STAYS + "".join(numbers[1:])).stderr == ""


@pytest.mark.parametrize(("least", "status"), [("error", 1), ("never", 0)])
def test_what_is_left_out_may_be_an_error(least: str, status: int) -> None:
    many = "---\n".join([*[NOTE] * FINDINGS_LIMIT, ERROR])
    assert run("-", "--fail-on", least, given=many).exit_code == status


def test_objects_without_a_namespace_are_in_the_named_one() -> None:
    bare = ERROR.replace("  namespace: inference\n", "")
    assert "in ScaledObject default/bert" in run("-", given=bare).output
    assert "in ScaledObject ml/bert" in run("-", "--namespace", "ml", given=bare).output
