"""The wheel as in the image: with the runtime lock's packages, and no right to write files.

The packages are copied out of the environment that runs the tests, into which they were installed
by the hashes of requirements.lock: that requires neither an index nor a cache.
"""

import contextlib
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from keda_gpu_scaler import __version__
from keda_gpu_scaler.cli import COMMANDS
from tests.cli import test_serve as serve
from tests.repository.test_docs import ROOT
from tests.repository.test_metadata import built

pytestmark = pytest.mark.slow

UV = os.environ.get("UV") or str(ROOT / ".cache" / "uv" / "bin" / "uv")
NONROOT = 65532
"""As in the Dockerfile."""


def locked(name: str) -> dict[str, frozenset[str]]:
    """Return what a lock pins, each with its hashes."""
    lines = (ROOT / name).read_text().replace("\\\n", "").splitlines()
    parts = [line.split(" --hash=") for line in lines if not line.startswith("#")]
    return {pinned.strip(): frozenset(map(str.strip, hashes)) for pinned, *hashes in parts}


def requirements(name: str) -> list[tuple[Requirement, frozenset[str]]]:
    """Return the same, parsed."""
    return [(Requirement(pinned), hashes) for pinned, hashes in locked(name).items()]


@pytest.fixture(scope="module")
def app() -> Iterator[Path]:
    """A read-only folder, readable for all users, with the wheel and its dependencies."""
    with tempfile.TemporaryDirectory(prefix="wheel-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        (wheel,) = built(ROOT, "wheel", home / "dist")
        app = home / "app"
        _run(UV, "venv", "--quiet", "--python", sys.executable, str(app))
        (packages,) = app.glob("lib/python3.*/site-packages")
        for requirement, _ in requirements("requirements-runtime.lock"):
            if requirement.marker is None or requirement.marker.evaluate():
                _copy(requirement, packages)
        install = ("pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(app))
        _run(UV, *install, str(wheel))
        _run("chmod", "-R", "a-w,a+rX", str(app))
        yield app
        _run("chmod", "-R", "u+w", str(app))


def _copy(requirement: Requirement, packages: Path) -> None:
    """Copy a package out of this environment, without its programs and with its byte code."""
    installed = metadata.distribution(requirement.name)
    assert requirement.specifier.contains(installed.version)
    for file in installed.files or ():
        if ".." not in file.parts:
            source, target = Path(str(file.locate())), packages / file
            _copy_file(source, target)
            if source.suffix == ".py" and (code := _byte_code(source)).exists():
                _copy_file(code, _byte_code(target))


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)  # with its mtime, which its byte code refers to


def _byte_code(source: Path) -> Path:
    return Path(importlib.util.cache_from_source(source))


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)


def nobody(*command: str) -> list[str]:
    """Return the command as one that may not write a byte into any file."""
    return ["prlimit", "--fsize=0", "--", *_without_rights(), *command]


@functools.cache
def _without_rights() -> Sequence[str]:
    """Return what runs a command as another user.

    Where a Python below /root is only for root, it is root without what makes it more than others.
    """
    program = shutil.which("setpriv") if os.geteuid() == 0 else None
    if program is None:
        return ()
    user = (program, f"--reuid={NONROOT}", f"--regid={NONROOT}", "--clear-groups", "--")
    tried = subprocess.run([*user, sys.executable, "-V"], capture_output=True, check=False)
    if tried.returncode == 0:
        return user
    return (program, "--inh-caps=-all", "--bounding-set=-all", "--")


def environment(**settings: str) -> dict[str, str]:
    """Return the environment of a container: no home, no PATH to other programs."""
    own = serve.environment(**settings)
    return {name: value for name, value in own.items() if name.startswith(serve.PREFIX)}


def files(app: Path) -> set[tuple[Path, int]]:
    return {(path, path.lstat().st_mtime_ns) for path in app.rglob("*")}


@contextlib.contextmanager
def untouched(app: Path) -> Iterator[None]:
    before = files(app)
    yield
    assert files(app) == before


HELP_OF_EACH = """
import sys
from importlib.metadata import entry_points
(program,) = entry_points(group="console_scripts", name="keda-gpu-scaler")
main = program.load()
for command in sys.argv[1:]:
    sys.argv = ["keda-gpu-scaler", *command.split(), "--help"]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
"""
"""Runs the commands one after the other: one process for each would take a second."""


def test_what_an_image_installs_is_what_tests_run_on_to_the_hash() -> None:
    ours, every = (
        {(one.name, str(one.specifier)): hashes for one, hashes in requirements(name)}
        for name in ("requirements-runtime.lock", "requirements.lock")
    )
    assert ours.items() <= every.items()


def test_what_a_package_needs_with_extras_is_pinned_with_them() -> None:
    """Otherwise pip 23.0, which Debian 12 has, finds it without a version and refuses the lock."""
    pinned = {
        canonicalize_name(one.name): one
        for one, _ in requirements("requirements-runtime.lock")
        if one.marker is None or one.marker.evaluate()
    }
    needed = [
        each
        for one in pinned.values()
        for each in map(Requirement, metadata.requires(one.name) or ())
        if each.marker is None or any(each.marker.evaluate({"extra": x}) for x in {"", *one.extras})
    ]
    with_extras = [each for each in needed if each.extras]
    assert with_extras
    assert not [
        each
        for each in with_extras
        if not each.extras <= pinned[canonicalize_name(each.name)].extras
    ]


def test_every_command_starts(app: Path) -> None:
    commands = ["", *COMMANDS]
    with untouched(app):
        done = subprocess.run(
            nobody(str(app / "bin" / "python"), "-c", HELP_OF_EACH, *commands),
            cwd=app,
            env={},
            capture_output=True,
            text=True,
            timeout=serve.PATIENCE_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    usages = [line for line in done.stdout.splitlines() if "Usage:" in line]
    assert len(usages) == len(commands)
    assert all(name in usage for name, usage in zip(commands, usages, strict=True))


def test_it_says_its_version(app: Path) -> None:
    command = nobody(str(app / "bin" / "keda-gpu-scaler"), "--version")
    done = subprocess.run(command, cwd=app, env={}, capture_output=True, text=True, check=True)
    assert done.stdout == f"keda-gpu-scaler {__version__}\n"


def test_it_serves_with_traces_and_writes_nothing(app: Path) -> None:
    with (
        untouched(app),
        subprocess.Popen(
            nobody(str(app / "bin" / "keda-gpu-scaler"), "serve"),
            cwd=app,
            env=environment(TRACES="true"),
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            port = serve.said(process, "serve.listening")["http_port"]
            ready = httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False)
            assert ready.status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(serve.PATIENCE_SECONDS) == 0
        finally:
            process.kill()


def test_nothing_of_the_tests_is_in_it(app: Path) -> None:
    (packages,) = app.glob("lib/python3.*/site-packages")
    assert (packages / "keda_gpu_scaler" / "pb" / "externalscaler_pb2.py").exists()
    assert not (packages / "tests").exists()
    assert not (packages / "pytest").exists()
