"""Generated files are what the rest gives; `python -m tools.generated` writes them anew."""

import subprocess
import sys

import pytest

from testbed.programs import ROOT


@pytest.mark.parametrize(
    "names",
    [
        ("chart-values", "times", "schema"),
        ("figures",),
        pytest.param(("replicas",), marks=pytest.mark.slow),
        pytest.param(("chart",), marks=pytest.mark.needs("helm")),
        pytest.param(("keda-schema",), marks=pytest.mark.needs("keda-crds.yaml")),
    ],
)
def test_what_is_generated_is_up_to_date(names: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tools.generated", "--check", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, (
        f"run python -m tools.generated {names[-1]}:\n{done.stdout}{done.stderr}"
    )
