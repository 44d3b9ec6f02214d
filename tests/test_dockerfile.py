"""The Dockerfile, read without a container engine: what can be said of it before it is built."""

import fnmatch
import json
import re
import tomllib
from typing import NamedTuple

from tests.test_docs import ROOT

TEXT = (ROOT / "deploy" / "Dockerfile").read_text()


class Instruction(NamedTuple):
    """One instruction, on one line."""

    word: str
    rest: str


def instructions() -> list[Instruction]:
    lines = re.sub(r"^\s*#.*\n", "", TEXT, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in lines if line.strip()]


def of(word: str) -> list[str]:
    return [one.rest for one in instructions() if one.word == word]


def sources() -> list[str]:
    """Return what is copied from the working tree."""
    copied = [rest.split() for rest in of("COPY") if not rest.startswith("--from")]
    return [source for words in copied for source in words[:-1]]


def ignored(path: str) -> bool:
    """Read .dockerignore: the last line that fits a path, or a folder it is in, decides."""
    parts = path.split("/")
    within = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    verdicts = [
        not line.startswith("!")
        for line in lines
        if any(
            fnmatch.fnmatch(f"/{each}", line.removeprefix("!").replace("**", "*"))
            or fnmatch.fnmatch(each, line.removeprefix("!"))
            for each in within
        )
    ]
    return verdicts[-1]


def test_every_stage_begins_with_the_one_base_that_is_pinned_by_its_digest() -> None:
    assert [rest.split()[0] for rest in of("FROM")] == ["${PYTHON_IMAGE}"] * 2
    (base,) = (rest for rest in of("ARG") if rest.startswith("PYTHON_IMAGE="))
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


def test_nothing_comes_from_elsewhere_but_what_has_a_hash() -> None:
    assert "://" not in TEXT
    assert ":latest" not in TEXT
    installs = [part for rest in of("RUN") for part in rest.split("&&") if " install " in part]
    assert len(installs) == 3
    assert all("--require-hashes" in part or "--no-deps dist/" in part for part in installs)


def test_it_copies_what_exists_and_what_is_not_ignored() -> None:
    assert {"keda_gpu_scaler", "requirements-runtime.lock"} <= set(sources())
    assert all((ROOT / source).exists() for source in sources())
    assert not [source for source in sources() if ignored(source)]
    assert ignored("tests/test_dockerfile.py")
    assert ignored("tools/go.mod")
    assert ignored(".git/config")
    assert ignored("keda_gpu_scaler/__pycache__/app.cpython-314.pyc")


def test_it_runs_as_nobody_by_number() -> None:
    assert of("USER") == ["65532:65532"]
    last_stage = instructions()[-6:]
    assert "RUN" not in {one.word for one in last_stage[1:]}


def test_it_starts_what_the_wheel_installs() -> None:
    (entry_point,), (command,) = of("ENTRYPOINT"), of("CMD")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert json.loads(entry_point) == list(project["scripts"])
    assert json.loads(command) == ["serve"]
    assert any(rest.startswith("PATH=/app/bin:") for rest in of("ENV"))


def test_it_says_what_it_is() -> None:
    (labels,) = of("LABEL")
    said = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', labels))
    arguments = {name.upper() for name, value in said.items() if value == f"${{{name.upper()}}}"}
    assert arguments == {"VERSION", "REVISION", "CREATED", "SOURCE"}
    assert {"title", "description", "licenses"} <= said.keys()
    assert {f"{name}=unknown" for name in arguments} <= set(of("ARG"))
