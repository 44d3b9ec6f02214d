"""`keda-gpu-scaler migrate`: a file in, a diff or the new file and a status out."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from tests.workbench.check.cases import RECIPE, STAYS

OTHER = RECIPE.replace("DCGM_FI_DEV_GPU_UTIL", "other_metric")


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli.app, ["migrate", *arguments], input=given)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with contextlib.chdir(tmp_path):
        yield tmp_path


def test_it_shows_what_changes_and_changes_no_file(folder: Path) -> None:
    (folder / "one.yaml").write_text(RECIPE)
    result = run("one.yaml", "--scaler-address", "scaler.gpus:6000")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "--- one.yaml",
        "+++ one.yaml",
        "@@ -9,8 +9,11 @@",
        "   minReplicaCount: 1",
        "   maxReplicaCount: 8",
        "   triggers:",
        "-    - type: prometheus",
        "+    - type: external",
        "       metadata:",
        "-        serverAddress: http://prometheus.monitoring.svc:9090",
        '-        query: avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}[5m]))',
        "+        # No serverAddress: a source is in the scaler's settings.",
        "+        scalerAddress: scaler.gpus:6000",
        '+        # Was: avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}[5m]))',
        "+        workload: bert",
        "+        window: 5m",
        '         threshold: "70"',
    ]
    assert (folder / "one.yaml").read_text() == RECIPE


def test_the_new_file_can_be_had_whole() -> None:
    result = run("-", "-o", "yaml", given=RECIPE)
    assert result.exit_code == 0
    assert result.stdout.startswith(RECIPE.partition("    - type")[0])
    assert run("-", "-o", "yaml", given=result.stdout).exit_code == 2


def test_a_file_without_a_last_line_feed_gives_a_diff_that_patch_takes() -> None:
    lines = run("-", given=RECIPE.replace('"70"\n', '"70"')).stdout.splitlines()
    assert lines[-2:] == ['         threshold: "70"', "\\ No newline at end of file"]


def test_what_stays_is_said_beside_what_is_moved() -> None:
    result = run("-", given=f"{RECIPE}---\n{OTHER}")
    assert result.exit_code == 1
    assert "+    - type: external" in result.stdout
    assert result.stderr.startswith(
        "keda-gpu-scaler: stays: -:29:7: ScaledObject inference/bert: nothing is known of"
    )


@pytest.mark.parametrize(
    ("given", "said"), [(STAYS, "-: no trigger of type prometheus"), ("a: [", "-:1: ")]
)
def test_nothing_to_move_is_an_error(given: str, said: str) -> None:
    result = run("-", given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
