"""What hadolint does not ask of the Dockerfile: what goes into the image, and who runs there."""

import re

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
    assert installs
    assert all("--require-hashes" in part or "--no-deps dist/" in part for part in installs)


def test_it_runs_as_nobody_by_number() -> None:
    assert of("USER") == ["65532:65532"]
