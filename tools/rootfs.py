"""`make rootfs`: carries out deploy/Dockerfile where no engine and no base image can be had.

In the place of the base image there is a Debian of the same release, with Debian's own Python of
the same line, made by mmdebstrap. buildah carries out the Dockerfile on it twice, in stores of
their own. Then: do both results hold the same files? Does what the image starts run as the image's
user, where nothing can be written? How large is it? What does an SBOM of it, made by syft, list?
docs/testing.md says what none of this shows.
"""

import argparse
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "rootfs"
RESULT = ROOT / "build" / "rootfs"
RELEASE = "trixie"
"""The release of Debian that the Dockerfile's base image is made of."""
BASE = "localhost/debian-python"
IMAGE = "localhost/keda-gpu-scaler"
MIB = 2**20
WITHIN_SECONDS = 60.0
DIFFERENCES_SHOWN = 20


class Wrong(Exception):  # noqa: N818 - it is what was found, in words
    """Something is not as it has to be; the message says what."""


class Entry(NamedTuple):
    """What is the same in two builds of the same file; its times are not a part of it."""

    kind: str
    mode: int
    owner: tuple[int, int]
    content: str
    """The digest of a file, where a link leads, empty for the rest."""


def inventory(top: Path) -> dict[str, Entry]:
    """Return everything below a folder, by its path."""
    return {str(path.relative_to(top)): _entry(path) for path in sorted(_below(top))}


def _below(top: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            yield Path(folder, name)


def _entry(path: Path) -> Entry:
    found = path.lstat()
    content = ""
    if stat.S_ISLNK(found.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(found.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    kind = stat.filemode(found.st_mode)[0]
    return Entry(kind, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid), content)


def differing(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> list[str]:
    """Return the paths at which two inventories differ."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def size(top: Path) -> int:
    """Return the bytes of all files below a folder, those with several names once."""
    files = {
        (found.st_dev, found.st_ino): found.st_size
        for found in (path.lstat() for path in _below(top))
        if stat.S_ISREG(found.st_mode)
    }
    return sum(files.values())


def locked(text: str, python: str) -> dict[str, str]:
    """Return the versions that a lock pins for Linux and a version of Python, by name."""
    lines = text.replace("\\\n", "").splitlines()
    pinned = [Requirement(line.partition(" --hash=")[0]) for line in lines if line[:1].isalnum()]
    there = {"python_version": python, "python_full_version": f"{python}.0"}
    return {
        _name(each.name): str(each.specifier).removeprefix("==")
        for each in pinned
        if each.marker is None or each.marker.evaluate(there)
    }


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def missing(sbom: Mapping[str, Any], wanted: Mapping[str, str]) -> list[str]:
    """Return the packages that an SBOM in SPDX does not list in their version."""
    listed = {(_name(each["name"]), each.get("versionInfo", "")) for each in sbom["packages"]}
    return sorted(f"{name} {version}" for name, version in wanted.items() - listed)


def _run(*words: str | Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, words)),
        env={**os.environ, **(env or {})},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Wrong(
            f"{words[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}"
        )
    return done.stdout


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def epoch() -> str:
    """Return the time that everything is built with: that of the commit."""
    return _run("git", "log", "-1", "--format=%ct").strip()


def debian() -> Path:
    """Return the archive of the Debian that stands for the base image, made if it is missing."""
    archive = CACHE / f"{RELEASE}.tar"
    if archive.exists():
        return archive
    _say(f"Making a Debian {RELEASE} with mmdebstrap: minutes, once")
    CACHE.mkdir(parents=True, exist_ok=True)
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "man", "locale")]
    packages = "ca-certificates,python3,python3-pip,python3-venv"
    hooks = [
        # As the image of Python has it: `python` is there, and pip may install.
        'ln -s /usr/bin/python3 "$1/usr/local/bin/python3"',
        'ln -s /usr/bin/python3 "$1/usr/local/bin/python"',
        'rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
    ]
    _run(
        "mmdebstrap",
        "--quiet",
        "--variant=apt",
        f"--include={packages}",
        *left_out,
        *(f"--customize-hook={hook}" for hook in hooks),
        RELEASE,
        archive.with_suffix(".part"),
        env={"SOURCE_DATE_EPOCH": epoch()},
    )
    archive.with_suffix(".part").rename(archive)
    return archive


@dataclass(frozen=True, slots=True)
class Store:
    """The images and containers of one build, which end with it."""

    folder: Path

    def buildah(self, *words: str | Path) -> str:
        """Run buildah on this store."""
        places = ("--root", self.folder / "store", "--runroot", self.folder / "run")
        # Plain copies: they work on every file system, and for root without a user namespace.
        return _run("buildah", *places, *words, env={"STORAGE_DRIVER": "vfs"}).strip()

    def image(self, archive: Path, when: str) -> Mapping[str, Any]:
        """Carry out the Dockerfile on a Debian; return the image's configuration."""
        base = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", base, archive, "/")
        self.buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", base)
        self.buildah("commit", "--quiet", "--rm", "--timestamp", when, base, BASE)
        # The CAs of this machine, whose index of packages may be one of its own.
        trust = self.folder / "uv.toml"
        trust.write_text("system-certs = true\n")
        arguments = {
            "PYTHON_IMAGE": BASE,
            "SOURCE_DATE_EPOCH": when,
            "REVISION": _run("git", "rev-parse", "HEAD").strip(),
        }
        self.buildah(
            "build",
            *("--isolation", "chroot", "--network", "host", "--timestamp", when),
            *("--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"),
            *("--volume", f"{trust}:/etc/uv/uv.toml:ro"),
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *("--file", "deploy/Dockerfile", "--tag", IMAGE, "."),
        )
        found = json.loads(self.buildah("inspect", "--type", "image", IMAGE))
        config: Mapping[str, Any] = found["OCIv1"]["config"]
        return config


@contextmanager
def image(number: int, archive: Path, when: str) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Build the image in a store of its own; give its configuration and its root."""
    folder = CACHE / f"build-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = Store(folder)
    try:
        config = store.image(archive, when)
        container = store.buildah("from", IMAGE)
        yield config, Path(store.buildah("mount", container))
        store.buildah("umount", container)
        store.buildah("rm", container)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


INSIDE = """
mount --bind "$1" "$1"
mount --rbind /proc "$1/proc"
mount --bind /dev "$1/dev"
mount -o remount,bind,ro "$1"
root=$1 user=$2
shift 2
exec chroot --userspec="$user" --groups= "$root" /usr/bin/env -i "$@"
"""


def inside(root: Path, config: Mapping[str, Any], words: Iterable[str], **more: str) -> list[str]:
    """Return the command that runs words in a read-only root, as the image's user."""
    settings = [*config["Env"], *(f"{name}={value}" for name, value in more.items())]
    start = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", INSIDE, "sh")
    return [*start, str(root), config["User"], *settings, *words]


def starts(root: Path, config: Mapping[str, Any]) -> None:
    """Start what the image starts, ask it whether it is ready, and end it.

    Raises:
        Wrong: it does not start, is not ready, can write, runs as another user, or does not end.
    """
    local = {
        "KEDA_GPU_SCALER_GRPC_ADDRESS": "127.0.0.1:0",
        "KEDA_GPU_SCALER_HTTP_ADDRESS": "127.0.0.1:0",
        "KEDA_GPU_SCALER_SCRAPE_TARGETS": "http://127.0.0.1:1/metrics",
        "KEDA_GPU_SCALER_LOG_FORMAT": "json",
    }
    command = inside(root, config, [*config["Entrypoint"], *config["Cmd"]], **local)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = _http_port(process)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_SECONDS)
            connection.request("GET", "/readyz")
            ready = connection.getresponse().status
            connection.close()
            user = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            process.send_signal(signal.SIGTERM)
            ended = process.wait(WITHIN_SECONDS)
        finally:
            process.kill()
    uid, gid = config["User"].split(":")
    runs_as = [re.findall(rf"^{kind}:\s+(.*)$", user, re.MULTILINE) for kind in ("Uid", "Gid")]
    if runs_as != [["\t".join([uid] * 4)], ["\t".join([gid] * 4)]]:
        raise Wrong(f"it runs as {runs_as} instead of {config['User']}")
    if (ready, ended) != (http.client.OK, 0):
        raise Wrong(f"/readyz answers {ready}, and after SIGTERM it ends with {ended}")


def _http_port(process: subprocess.Popen[str]) -> int:
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        said = json.loads(line)
        if said["event"] == "serve.listening":
            return int(said["http_port"])
    raise Wrong(f"it did not start:\n{''.join(lines)}")


def cannot_write(root: Path, config: Mapping[str, Any]) -> None:
    """Try to write where the image's files and usual folders are.

    Raises:
        Wrong: a place took it.
    """
    places = ["/", "/app", "/tmp", "/var/tmp", "/home"]  # noqa: S108 - to see that none takes it
    script = (
        "import sys\n"
        "for place in sys.argv[1:]:\n"
        "    try:\n"
        "        open(place + '/written', 'w')\n"
        "    except OSError:\n"
        "        continue\n"
        "    print(place)\n"
    )
    took = _run(*inside(root, config, ["/app/bin/python", "-c", script, *places])).split()
    if took:
        raise Wrong(f"it can write below {', '.join(took)}")


def sbom(syft: str, root: Path) -> Mapping[str, Any]:
    """Write the SBOM of a root, and return it."""
    target = RESULT / "sbom.spdx.json"
    _run(syft, "scan", f"dir:{root}", "--quiet", "--output", f"spdx-json={target}")
    found: Mapping[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return found


def report(syft: str) -> None:
    """Build, compare, start and list; print what was found.

    Raises:
        Wrong: something is not as it has to be.
    """
    archive, when = debian(), epoch()
    RESULT.mkdir(parents=True, exist_ok=True)
    with image(1, archive, when) as (_, root):
        first = inventory(root)
    with image(2, archive, when) as (config, root):
        second = inventory(root)
        others = differing(first, second)
        _say(f"Two builds: {len(second)} files and folders, {len(others)} differ")
        starts(root, config)
        cannot_write(root, config)
        _say(f"Starts as {config['User']} in a root that cannot be written to, and ends with 0")
        _say(f"Size: {size(root) / MIB:.0f} MiB, of which /app {size(root / 'app') / MIB:.0f} MiB")
        (python,) = (path.name.removeprefix("python") for path in root.glob("app/lib/python3.*"))
        lock = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8")
        listed = sbom(syft, root)
    absent = missing(listed, locked(lock, python))
    count = len(listed["packages"])
    _say(f"SBOM: {RESULT.relative_to(ROOT)}/sbom.spdx.json lists {count} packages")
    if others:
        raise Wrong("two builds differ:\n" + "\n".join(others[:DIFFERENCES_SHOWN]))
    if absent:
        raise Wrong(f"the SBOM lacks {', '.join(absent)}")


def main() -> None:
    """Run on a machine with the programs it needs, as root."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--syft", required=True, help="the program that makes the SBOM")
    syft = given.parse_args().syft
    needed = [each for each in ("mmdebstrap", "buildah", "unshare") if shutil.which(each) is None]
    if needed or os.geteuid():
        words = f"install {', '.join(needed)}" if needed else "run it as root"
        sys.exit(f"make rootfs needs mmdebstrap and buildah, and root for its mounts: {words}")
    try:
        report(syft)
    except Wrong as error:
        sys.exit(f"make rootfs: {error}")


if __name__ == "__main__":
    main()
