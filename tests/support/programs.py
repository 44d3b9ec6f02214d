"""The programs that tests and benchmarks run and that are not Python: found here, or built first.

A program is the one that the environment names (KUBE_APISERVER for `kube-apiserver`), else one of a
version that tests are right on from the PATH, else what `tools/programs.mk` has put into .cache.

    python -m tests.support.programs helm kubectl  # builds what is missing, prints where each is
"""

import fcntl
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache"
ASSETS = "KUBEBUILDER_ASSETS"
_ANSWERS_WITHIN_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Program:
    """One program, and which of those that may be on the PATH will do."""

    name: str
    folder: str
    """Below .cache, where it is built."""
    version: tuple[str, ...] = ()
    """The words that make it print its version."""
    fits: str = ""
    """What its version has to look like; empty: none on the PATH is taken."""
    command: str = ""
    """Its name on the PATH, where that is another."""

    @property
    def variable(self) -> str:
        return self.name.upper().replace("-", "_")

    @property
    def built(self) -> Path:
        return CACHE / self.folder / self.name

    def named(self) -> str | None:
        """Return the one that the environment names.

        Raises:
            RuntimeError: what it names cannot be run.
        """
        text = os.environ.get(self.variable)
        if text and shutil.which(text) is None:
            message = f"{self.variable} is {text!r}, which is no program: name one, or unset it"
            raise RuntimeError(message)
        assets = os.environ.get(ASSETS)
        candidates = [text, str(Path(assets) / self.name) if assets else None]
        return next(filter(None, map(shutil.which, filter(None, candidates))), None)

    def installed(self) -> str | None:
        """Return the one on the PATH, if tests are right on its version."""
        found = shutil.which(self.command or self.name) if self.fits else None
        return found if found and re.search(self.fits, _said(found, self.version)) else None

    def at_hand(self) -> str | None:
        """Return the one that is there without a build."""
        return self.named() or self.installed()


@functools.cache
def _said(program: str, words: tuple[str, ...]) -> str:
    done = subprocess.run(
        [program, *words],
        capture_output=True,
        text=True,
        timeout=_ANSWERS_WITHIN_SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def _folder(name: str, *parts: str) -> list[Program]:
    """Return the parts of another version: none on the PATH is taken for them."""
    return [Program(f"{name}/{part}", "e2e") for part in parts]


_KUBERNETES = ("--version",), r"Kubernetes v1\.36\."
_TABLE = (
    Program("prometheus", "bin", ("--version",), r"version 3\."),
    Program("promtool", "bin", ("--version",), r"version 3\."),
    Program("prom-label-proxy", "bin", ("--version",), r"."),
    Program("grpcurl", "bin", ("-version",), r"grpcurl"),
    Program("actionlint", "bin", ("-version",), r"^1\."),
    Program("syft", "bin", ("version",), r"Version: +1\."),
    Program("helm", "bin", ("version", "--short"), r"v4\."),
    Program("kubectl", "bin", ("version", "--client"), r"v1\.3[5-9]\."),
    Program("prometheus-2", "servers", ("--version",), r"version 2\.", "prometheus"),
    Program("victoria-metrics", "servers", ("-version",), r"v1\."),
    Program("influxd", "servers", ("version",), r"InfluxDB v?1\."),
    Program("chromium", "servers", ("--version",), r"Chrom\w+ 1[2-9]\d\."),
    Program("chromedriver", "servers", ("--version",), r"ChromeDriver 1[2-9]\d\."),
    Program("etcd", "e2e", ("--version",), r"etcd Version: 3\.[6-9]"),
    Program("kube-apiserver", "e2e", *_KUBERNETES),
    Program("kube-controller-manager", "e2e", *_KUBERNETES),
    Program("kube-scheduler", "e2e", *_KUBERNETES),
    # Which KEDA and which KWOK runs is a part of what a scenario claims.
    Program("keda-operator", "e2e"),
    Program("keda-adapter", "e2e"),
    Program("keda-webhooks", "e2e"),
    Program("keda-crds.yaml", "e2e"),
    *_folder("keda-2.20", "keda-operator", "keda-adapter", "keda-webhooks", "keda-crds.yaml"),
    *_folder("keda-2.16", "keda-operator", "keda-adapter", "keda-crds.yaml"),
    *_folder("kube-1.35", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *_folder("kube-1.37", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    Program("kwok", "e2e"),
    Program("alertmanager", "e2e", ("--version",), r"version 0\.(2[7-9]|[3-9]\d)\."),
    Program("cert-manager-crds.yaml", "e2e"),
    Program("prometheus-operator-crds.yaml", "e2e"),
)
PROGRAMS = {each.name: each for each in _TABLE}


def path(name: str) -> str:
    """Return where a program is.

    Raises:
        RuntimeError: it is neither named nor installed nor built.
    """
    program = PROGRAMS[name]
    found = program.at_hand() or (str(program.built) if program.built.exists() else None)
    if found is None:
        message = (
            f"{name} is neither named in {program.variable}, nor on the PATH, nor built: mark the"
            f' test with @pytest.mark.needs("{name}") and run `make test-servers`'
        )
        raise RuntimeError(message)
    return found


def build(names: Iterable[str]) -> None:
    """Build those that are not at hand, or are older than what they are built from.

    Of the processes that ask for it at the same time one builds, and the others wait.

    Raises:
        RuntimeError: one cannot be built; the reason has been printed.
    """
    wanted = [PROGRAMS[name] for name in sorted(names)]
    targets = [str(each.built.relative_to(ROOT)) for each in wanted if not each.at_hand()]
    if not targets:
        return
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make = ("make", "--silent", "--no-print-directory", "--file", "tools/programs.mk")
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
