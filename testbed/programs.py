"""The programs that are not Python, of tests, benchmarks and tools: found here, or built first.

A program is the one that the environment names (KUBE_APISERVER for `kube-apiserver`), else what
`testbed/programs.mk` has put into .cache.

    python -m testbed.programs helm kubectl  # builds what is missing, prints where each is
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache"
_FOLDERS = {
    "bin": "prometheus promtool prom-label-proxy grpcurl actionlint syft helm kubectl",
    "servers": "prometheus-2 victoria-metrics influxd chromium chromedriver",
    "e2e": "etcd kwok alertmanager cert-manager-crds.yaml prometheus-operator-crds.yaml"
    " kube-apiserver kube-controller-manager kube-scheduler"
    " keda-operator keda-adapter keda-webhooks keda-crds.yaml",
    "e2e/keda-2.20": "keda-operator keda-adapter keda-webhooks keda-crds.yaml",
    "e2e/keda-2.16": "keda-operator keda-adapter keda-crds.yaml",
    "e2e/kube-1.35": "kube-apiserver kube-controller-manager kube-scheduler",
    "e2e/kube-1.37": "kube-apiserver kube-controller-manager kube-scheduler",
}
"""What is built into each folder of .cache."""


def _name(folder: str, program: str) -> str:
    """Return what a program is called here: another version has its folder in the name."""
    version = folder.partition("/")[2]
    return f"{version}/{program}" if version else program


PROGRAMS: Mapping[str, Path] = {
    _name(folder, program): CACHE / folder / program
    for folder, programs in _FOLDERS.items()
    for program in programs.split()
}
"""Where each program is built."""


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def named(name: str) -> str | None:
    """Return the program that the environment names.

    Raises:
        RuntimeError: what it names cannot be run.
    """
    text = os.environ.get(_variable(name))
    if text and shutil.which(text) is None:
        message = f"{_variable(name)} is {text!r}, which is no program: name one, or unset it"
        raise RuntimeError(message)
    return shutil.which(text) if text else None


def path(name: str) -> str:
    """Return where a program is.

    Raises:
        RuntimeError: it is neither named nor built.
    """
    built = PROGRAMS[name]
    found = named(name) or (str(built) if built.exists() else None)
    if found is None:
        message = (
            f"{name} is neither named in {_variable(name)} nor built: mark the test with"
            f' @pytest.mark.needs("{name}") and run `make test-servers`'
        )
        raise RuntimeError(message)
    return found


def build(names: Iterable[str]) -> None:
    """Build those that are not named, or are older than what they are built from.

    Of the processes that ask for it at the same time one builds, and the others wait.

    Raises:
        RuntimeError: one cannot be built; the reason has been printed.
    """
    wanted = (name for name in sorted(names) if not named(name))
    targets = [str(PROGRAMS[name].relative_to(ROOT)) for name in wanted]
    if not targets:
        return
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make = ("make", "--silent", "--no-print-directory", "--file", "testbed/programs.mk")
        # Standard output is for the paths that `main` prints.
        done = subprocess.run([*make, *targets], cwd=ROOT, stdout=sys.stderr, check=False)
    if done.returncode:
        message = f"cannot build {', '.join(targets)}: see above"
        raise RuntimeError(message)


def main(names: list[str]) -> None:
    """Build what is asked for, or everything, and print where each one is."""
    build(names or PROGRAMS)
    sys.stdout.writelines(f"{path(name)}\n" for name in names or PROGRAMS)


if __name__ == "__main__":
    main(sys.argv[1:])
