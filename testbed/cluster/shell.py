"""Command lines as a person types them, with bash, in a cluster that runs pods of our image.

The working directory is the repository's root. On the PATH are helm, kubectl and
keda-gpu-scaler of this checkout. KUBECONFIG names the cluster, and the proxy variables its network:
names such as `keda-gpu-scaler.keda.svc:6000` work here as in a pod. `kubectl exec` and
`port-forward`, which need a container runtime, do not.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import programs
from testbed.cluster.cluster import Cluster
from testbed.processes import bounded
from testbed.programs import ROOT


@dataclass(frozen=True, slots=True)
class Done:
    """One command that has ended."""

    command: str
    status: int
    output: str
    """Both streams, in the order in which they were written."""

    def __str__(self) -> str:
        return f"$ {self.command}\n{self.output}\n[exit status {self.status}]"


@dataclass(frozen=True, slots=True)
class Shell:
    """One person's terminal."""

    environment: Mapping[str, str]

    async def run(self, command: str, typed: str = "") -> Done:
        """Run one or several lines until one fails, and return how they ended.

        Args:
            command: what to run; its status is 124 if it takes longer than ten minutes.
            typed: what it reads from its standard input.
        """
        process = await asyncio.create_subprocess_exec(
            *(*bounded(600), "bash", "-c", f"set -e\n{command}"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(self.environment),
            cwd=ROOT,
        )
        output, _ = await process.communicate(typed.encode())
        return Done(command, process.returncode or 0, output.decode(errors="replace"))

    async def expect(self, command: str, typed: str = "") -> str:
        """Run it, and return its output.

        Raises:
            AssertionError: it failed; the message has its output.
        """
        done = await self.run(command, typed)
        assert done.status == 0, str(done)
        return done.output


def open_shell(cluster: Cluster, home: Path) -> Shell:
    """Open a terminal on a cluster; programs keep what they write beside their work in `home`."""
    path = home / "bin"
    path.mkdir(parents=True)
    for name in ("helm", "kubectl"):
        (path / name).symlink_to(programs.path(name))
    (path / "keda-gpu-scaler").symlink_to(Path(sys.executable).with_name("keda-gpu-scaler"))
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY"), cluster.keda.proxy or "")
    return Shell(
        {
            "PATH": f"{path}:{os.environ['PATH']}",
            "HOME": str(home),
            "KUBECONFIG": str(cluster.kubeconfig),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost"),
            **proxies,
        }
    )
