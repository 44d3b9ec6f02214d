"""The wheel, as a package index gets it and as in the image, where it may write no file.

The packages are copied out of the environment that runs the tests, into which they were installed
by the hashes of requirements.lock: that requires neither an index nor a cache.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from keda_gpu_scaler.cli import COMMANDS
from tests.repository.test_docs import ROOT
from tests.support import serving as serve

pytestmark = pytest.mark.slow

UV = os.environ.get("UV") or str(ROOT / ".cache" / "uv" / "bin" / "uv")


def requirements(name: str) -> list[tuple[Requirement, frozenset[str]]]:
    """Return what a lock pins, each with its hashes."""
    lines = (ROOT / name).read_text().replace("\\\n", "").splitlines()
    parts = [line.split(" --hash=") for line in lines if not line.startswith("#")]
    return [(Requirement(pin.strip()), frozenset(map(str.strip, of))) for pin, *of in parts]


def built(folder: Path, target: str, into: Path) -> Path:
    """Build what is uploaded to a package index, and return the file."""
    command = (sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into))
    _run(*command, folder=folder)
    (path,) = into.iterdir()
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of the working tree, unpacked."""
    archive = built(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("source")
    # Not by `tarfile`, which only knows from Python 3.11.4 on what is safe to unpack.
    _run("tar", "-xzf", str(archive), "-C", str(unpacked))
    (folder,) = unpacked.iterdir()
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source archive alone."""
    return built(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def app(wheel: Path) -> Iterator[Path]:
    """A read-only folder, readable for all users, with the wheel and its dependencies."""
    with tempfile.TemporaryDirectory(prefix="wheel-") as directory:
        home = Path(directory)
        home.chmod(0o755)
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
    """Copy a package out of this environment, without its programs."""
    installed = metadata.distribution(requirement.name)
    assert requirement.specifier.contains(installed.version)
    for file in installed.files or ():
        if ".." not in file.parts:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(str(file.locate())), target)


def _run(*command: str, folder: Path = ROOT) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)


def unable_to_write(*command: str) -> list[str]:
    """Return the command as one that may not write a byte, not even where it is root."""
    without_rights = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"]
    is_root = os.geteuid() == 0 and shutil.which("setpriv") is not None
    return ["prlimit", "--fsize=0", "--", *(without_rights if is_root else []), *command]


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


def test_the_source_archive_and_the_wheel_have_the_package_and_nothing_else(
    source: Path, wheel: Path
) -> None:
    chosen = {"CHANGELOG.md", "LICENSE", "README.md", "keda_gpu_scaler", "pyproject.toml"}
    added_by_every_build = {".gitignore", "PKG-INFO"}
    assert {path.name for path in source.iterdir()} == chosen | added_by_every_build
    package = (path for path in (ROOT / "keda_gpu_scaler").rglob("*") if path.is_file())
    own = {str(path.relative_to(ROOT)) for path in package if path.suffix != ".pyc"}
    with zipfile.ZipFile(wheel) as files:
        assert {name for name in files.namelist() if ".dist-info/" not in name} == own
    assert "keda_gpu_scaler/py.typed" in own


def test_every_command_starts(app: Path) -> None:
    commands = ["", *COMMANDS]
    with untouched(app):
        done = subprocess.run(
            unable_to_write(str(app / "bin" / "python"), "-c", HELP_OF_EACH, *commands),
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


def test_it_serves_with_traces_and_writes_nothing(app: Path) -> None:
    with (
        untouched(app),
        subprocess.Popen(
            unable_to_write(str(app / "bin" / "keda-gpu-scaler"), "serve"),
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
