"""What no linter asks of the Dockerfile; `make check-workflows` asks the rest, of hadolint."""

import json
import re
import tomllib

from tests.repository.test_docs import ROOT

LINES = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ").splitlines()


def of(word: str) -> list[str]:
    """Return what follows an instruction's name, wherever it stands."""
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def test_every_stage_begins_with_the_one_base_that_is_pinned_by_its_digest() -> None:
    assert [rest.split()[0] for rest in of("FROM")] == ["${PYTHON_IMAGE}"] * 2
    (base,) = (rest for rest in of("ARG") if rest.startswith("PYTHON_IMAGE="))
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


def test_nothing_is_installed_but_what_has_a_hash() -> None:
    assert not any("://" in line for line in LINES)
    installs = [part for rest in of("RUN") for part in rest.split("&&") if " install " in part]
    assert len(installs) == 3
    assert all("--require-hashes" in part or "--no-deps dist/" in part for part in installs)


def test_what_it_copies_exists_and_is_not_ignored() -> None:
    copied = [rest.split()[:-1] for rest in of("COPY") if not rest.startswith("--from")]
    sources = {source for words in copied for source in words}
    assert {"keda_gpu_scaler", "requirements-runtime.lock"} <= sources
    assert {source for source in sources if not (ROOT / source).exists()} == set()
    everything, *let_in = (ROOT / ".dockerignore").read_text().splitlines()[1:]
    assert everything == "*"
    assert {f"!{source}" for source in sources} - set(let_in) == set()


def test_it_runs_as_nobody_by_number_and_starts_what_the_wheel_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert of("USER") == ["65532:65532"]
    assert [json.loads(rest) for rest in of("ENTRYPOINT")] == [list(project["scripts"])]
    assert of("CMD") == ['["serve"]']
    assert any(rest.startswith("PATH=/app/bin:") for rest in of("ENV"))
