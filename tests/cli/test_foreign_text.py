"""Others' text on its way to a terminal or to the log of a CI, at each command that prints it."""

import json
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.workbench.backtest.advice import Advice, Case
from keda_gpu_scaler.workbench.backtest.output import Job, Result, write
from keda_gpu_scaler.workbench.backtest.work import Work
from testbed import triggers
from tests.support import scalers
from tests.support.probing import probing
from tests.support.scalers import Scaler

HOSTILE = "a\x1b[2J\r\n::error::forged"
OBJECT = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": HOSTILE, "namespace": "ml"},
    "spec": {
        "scaleTargetRef": {"name": HOSTILE},
        "triggers": [
            {
                "type": "external",
                "metadata": {"scalerAddress": "gpu-scaler:6000", "treshold": HOSTILE},
            }
        ],
    },
}
NOT_OURS = json.dumps(OBJECT | {"spec": {"triggers": [{"type": "cron"}]}})
SOURCE = "--prometheus-url", "http://127.0.0.1:1"


def is_plain(text: str) -> bool:
    """Return whether no text of another begins a line, and nothing of it is a control character."""
    lines = text.removesuffix("\n").split("\n")
    return all(line.isprintable() and not line.startswith("::") for line in lines)


@pytest.mark.parametrize("text", [json.dumps(OBJECT), NOT_OURS, "a: [", "", "\udcff"])
@pytest.mark.parametrize(
    "command",
    [
        ("check",),
        ("check", "--output", "json"),
        ("check", "--output", "sarif"),
        ("migrate",),
        ("backtest", *SOURCE),
        ("probe", "127.0.0.1:1", "--file"),
        ("explain", *SOURCE, "--file"),
    ],
)
def test_files_and_their_names_are_printed_without_controls(
    command: Sequence[str], text: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{HOSTILE.replace('/', '')}.yaml"
    path.write_text(text, errors="surrogateescape")
    result = CliRunner().invoke(cli.app, [*command, str(path)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    # check has nothing to say of a file without a trigger of ours, nor probe of a good one.
    is_silent = (command[0], text) in {("check", NOT_OURS), ("probe", json.dumps(OBJECT))}
    assert "forged" in result.output or is_silent
    assert is_plain(result.output)


GOOD = OBJECT | {
    "metadata": {"name": "bert", "namespace": "ml"},
    "spec": {
        "scaleTargetRef": {"name": "bert"},
        "triggers": [
            {
                "type": "external",
                "metadata": {
                    "scalerAddress": "gpu-scaler:6000",
                    "workload": "bert",
                    "threshold": "70",
                },
            },
            {"type": HOSTILE},
        ],
    },
}
EPISODE = {"load": {"0s": 40}, "expect": {"5m": 1}}


@pytest.mark.parametrize(
    ("name", "changes", "objects"),
    [
        ("bert", {}, 1),  # it is as expected
        ("bert", {"expect": {"5m": 9}}, 1),
        (HOSTILE, {}, 2),
        ("bert", {HOSTILE: 1}, 1),
        ("bert", {"load": {HOSTILE: 1}}, 1),
        ("bert", {"load": {"0s": HOSTILE}}, 1),
        ("bert", {"expect": {HOSTILE: HOSTILE}}, 1),
    ],
)
def test_episodes_are_printed_without_controls(
    name: str, changes: dict[str, object], objects: int, tmp_path: Path
) -> None:
    episode = {"kind": "Episode", "metadata": {"name": name}, "spec": EPISODE | changes}
    path = tmp_path / f"{HOSTILE}.yaml"
    path.write_text("\n---\n".join(map(json.dumps, [episode, *[GOOD] * objects])))
    result = CliRunner().invoke(cli.app, ["backtest", str(path)])
    assert "forged.yaml:1: Episode" in result.output
    assert is_plain(result.output)


def test_the_result_of_a_backtest_is_printed_without_controls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = Case(spec=triggers.spec())
    job = Job(triggers.BERT, case, (f"trigger {HOSTILE}",), stays=False)
    result = Result(job, Work(0, [50.0]), [], [], Advice("Keep threshold 70."))
    write([result], price=None, html=None, as_json=False)
    printed = capsys.readouterr().out
    assert "Left out: trigger a" in printed
    assert is_plain(printed)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--workload", HOSTILE),
        ("--workload", f"ml/{HOSTILE}=1:50"),
        ("--address", HOSTILE),
        ("--kubernetes", "--node-selector", HOSTILE),
        ("--kubernetes",),
    ],
)
def test_what_simulate_is_given_is_printed_without_controls(
    arguments: Sequence[str], tmp_path: Path
) -> None:
    kubeconfig = tmp_path / HOSTILE
    kubeconfig.write_text(
        json.dumps({"current-context": HOSTILE, "clusters": [], "contexts": [], "users": []})
    )
    runner = CliRunner(env={"KUBECONFIG": str(kubeconfig), "COLUMNS": "300"})
    result = runner.invoke(cli.app, ["simulate", *arguments])
    assert result.exit_code in {1, 2}
    assert "forged" in result.output
    assert is_plain(result.output)


REFUSED = grpc.StatusCode.INVALID_ARGUMENT, HOSTILE
SPEC = pb.MetricSpec(metricName=HOSTILE, targetSize=3)


@pytest.mark.parametrize("scaler", [Scaler(refusal=REFUSED), Scaler(specs=(SPEC,))])
def test_what_a_scaler_answers_is_printed_without_controls(scaler: Scaler) -> None:
    with scalers.serving(scaler) as port:
        result = probing(port, "--metadata", "workload=bert")
    assert "forged" in result.output
    assert is_plain(result.output)
