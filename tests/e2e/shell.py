"""Command lines as a person types them, with bash, in a cluster of the tests.

    async with open_shell(cluster, tmp_path) as shell:
        done = await shell.run("helm install keda-gpu-scaler deploy/helm/keda-gpu-scaler -n keda")
        done.output                           # what a terminal would show, both streams
        await shell.expect("kubectl get pods -n keda")     # the output; fails unless it ends well
        await shell.keep("kubectl port-forward -n keda svc/keda-gpu-scaler-http 8080:8080")
        await shell.expect("curl -s http://127.0.0.1:8080/readyz")

`cluster` is a `tests.e2e.cluster.Cluster` that was created with `runs_pods=True`: the fixture
`live` is one, and `shell` is a terminal on it. The working directory is the repository's root
unless another one is given. On the PATH are helm, kubectl and grpcurl,
keda-gpu-scaler of this checkout, and the system's own programs such as curl. KUBECONFIG names the
cluster, and the proxy variables its network: names such as `keda-gpu-scaler.keda.svc:6000` work
here as in a pod. `kubectl port-forward` and `kubectl exec` are played by `tests.e2e.kubectl`; the
rest is the real one. Nothing of helm's is written outside the given directory.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.cluster import Cluster
from tests.e2e.pods import Pods
from tests.e2e.programs import ROOT
from tests.support import programs
from tests.support.processes import bounded

_LIFE_SECONDS = 600
"""The longest life of a background command that is not ended before."""
_TOOLS = ("helm", "grpcurl")
_SHOWS_SOMETHING_SECONDS = 30.0
_LINE_BYTES = 2**16
"""The default limit of a line in asyncio."""


@dataclass(frozen=True, slots=True)
class Done:
    """One command that has ended."""

    command: str
    status: int
    output: str
    """Both streams, in the order in which they were written."""

    def __str__(self) -> str:
        """Show it as a terminal would, for a failure's message."""
        return f"$ {self.command}\n{self.output}\n[exit status {self.status}]"


@dataclass(slots=True)
class Shell:
    """One person's terminal."""

    environment: Mapping[str, str]
    directory: Path = ROOT
    """Where commands run."""
    _kept: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def run(self, command: str, within_seconds: float = 120, typed: str = "") -> Done:
        """Run one or several lines with bash, and return how they ended.

        Args:
            command: what to run; it ends with its first line that fails.
            within_seconds: it is killed after this time, and its status is 124.
            typed: what it reads from its standard input.
        """
        process = await self.bash("-c", f"set -e\n{command}", within_seconds=within_seconds)
        output, _ = await process.communicate(typed.encode())
        return Done(command, process.returncode or 0, output.decode(errors="replace"))

    async def expect(self, command: str, within_seconds: float = 120, typed: str = "") -> str:
        """Run it, and return its output.

        Raises:
            AssertionError: it failed; the message has its output.
        """
        done = await self.run(command, within_seconds, typed)
        assert done.status == 0, str(done)
        return done.output

    async def keep(self, command: str) -> str:
        """Leave a command running, as in another terminal, and return the first line it shows."""
        process = await self.bash("-c", f"exec {command}", within_seconds=_LIFE_SECONDS)
        self._kept.append(process)
        assert process.stdout is not None
        async with asyncio.timeout(_SHOWS_SOMETHING_SECONDS):
            return (await process.stdout.readline()).decode()

    async def close(self) -> None:
        """End what was left running."""
        for process in self._kept:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()

    async def bash(
        self, *words: str, within_seconds: float, line_bytes: int = _LINE_BYTES
    ) -> asyncio.subprocess.Process:
        """Start a bash that leads a group of its own, with both of its streams in one.

        Args:
            words: its arguments.
            within_seconds: it ends after this time at the latest.
            line_bytes: the longest line that can be read from it.
        """
        return await asyncio.create_subprocess_exec(
            *bounded(within_seconds),
            "bash",
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(self.environment),
            cwd=self.directory,
            limit=line_bytes,
            start_new_session=True,
        )


@contextlib.asynccontextmanager
async def open_shell(cluster: Cluster, home: Path, directory: Path = ROOT) -> AsyncIterator[Shell]:
    """Open a terminal on a cluster; what is left running in it ends with the block.

    Args:
        cluster: one that runs pods.
        home: where programs keep what they write beside their work.
        directory: where commands run.
    """
    assert cluster.pods is not None, "the cluster runs no pods"
    path = home / "bin"
    path.mkdir()
    for name in _TOOLS:
        (path / name).symlink_to(programs.path(name))
    _write_kubectl(path / "kubectl", cluster.pods)
    (path / "keda-gpu-scaler").symlink_to(Path(sys.executable).with_name("keda-gpu-scaler"))
    shell = Shell(_environment(path, home, cluster.kubeconfig, cluster.pods), directory)
    try:
        yield shell
    finally:
        await shell.close()


def _write_kubectl(path: Path, pods: Pods) -> None:
    """Write a kubectl that leaves to us what only a container runtime could do."""
    path.write_text(
        "#!/bin/bash\n"
        'for word in "$@"; do\n'
        "  case $word in\n"
        f"    port-forward|exec) PYTHONPATH={ROOT} exec {sys.executable} -m tests.e2e.kubectl"
        f' {pods.directory} "$@" ;;\n'
        "    --) break ;;\n"
        "  esac\n"
        "done\n"
        f'exec {programs.path("kubectl")} "$@"\n'
    )
    path.chmod(0o755)


def _environment(path: Path, home: Path, kubeconfig: Path, pods: Pods) -> dict[str, str]:
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY"), pods.network_url)
    return {
        "PATH": f"{path}:{os.environ['PATH']}",
        "HOME": str(home),
        "KUBECONFIG": str(kubeconfig),
        "no_proxy": "127.0.0.1,localhost",
        "NO_PROXY": "127.0.0.1,localhost",
        **proxies,
    }
