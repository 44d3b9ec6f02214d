"""Others' text on its way to a terminal or to the log of a CI, at each command that prints it."""

import json
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
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


REFUSED = grpc.StatusCode.INVALID_ARGUMENT, HOSTILE
SPEC = pb.MetricSpec(metricName=HOSTILE, targetSize=3)


@pytest.mark.parametrize("scaler", [Scaler(refusal=REFUSED), Scaler(specs=(SPEC,))])
def test_what_a_scaler_answers_is_printed_without_controls(scaler: Scaler) -> None:
    with scalers.serving(scaler) as port:
        result = probing(port, "--metadata", "workload=bert")
    assert "forged" in result.output
    assert is_plain(result.output)
