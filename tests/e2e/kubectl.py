"""Play `kubectl port-forward` and `kubectl exec` where pods are processes.

    python -m tests.e2e.kubectl DIRECTORY port-forward -n keda svc/keda-gpu-scaler-http 8080:8080
    python -m tests.e2e.kubectl DIRECTORY exec -n keda deploy/keda-gpu-scaler -- keda-gpu-scaler …

Both commands use a container runtime on the pod's node. The real kubectl does everything else: the
shell of the tests sends only these two here (`tests.e2e.shell`). The output is like the real one's.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import lightkube
from lightkube.resources.apps_v1 import Deployment, ReplicaSet, StatefulSet
from lightkube.resources.core_v1 import Pod, Service

from tests.e2e.kubelet import addresses
from tests.e2e.network import ADDRESS, pipe

_OWNERS: dict[str, Any] = {
    **dict.fromkeys(("deploy", "deployment", "deployments"), Deployment),
    **dict.fromkeys(("rs", "replicaset", "replicasets"), ReplicaSet),
    **dict.fromkeys(("sts", "statefulset", "statefulsets"), StatefulSet),
}
_SERVICES = frozenset({"svc", "service", "services"})
Manifest = dict[str, Any]


def main(words: list[str]) -> int:
    """Do what one command line says, and return its exit status."""
    directory, action, *rest = words
    given = _parsed(action, rest)
    configuration = lightkube.KubeConfig.from_file(os.environ["KUBECONFIG"])
    client = lightkube.Client(configuration, namespace=given.namespace, trust_env=False)
    with contextlib.closing(client):
        service, pod = _found(client, given.target)
    if action == "exec":
        return _execute(Path(directory), pod, given)
    asyncio.run(_forward(service, pod, given))
    return 0


def _parsed(action: str, words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"kubectl {action}")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("-c", "--container")
    parser.add_argument("--address", default="127.0.0.1")
    for flag in ("-i", "--stdin", "-t", "--tty"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("target")
    parser.add_argument("rest", nargs="+")
    command = words[words.index("--") + 1 :] if "--" in words else []
    own = words[: words.index("--")] if command else words
    return parser.parse_args([*own, "--", *command] if command else own)


def _found(client: lightkube.Client, target: str) -> tuple[Manifest | None, Manifest]:
    """Return the pod that a command is about, and the Service it was found by, if any."""
    kind, _, name = target.rpartition("/")
    if kind in _SERVICES:
        service = client.get(Service, name).to_dict()
        return service, _one_of(client, service["spec"]["selector"])
    if kind in _OWNERS:
        owner = client.get(_OWNERS[kind], name).to_dict()
        return None, _one_of(client, owner["spec"]["selector"]["matchLabels"])
    return None, client.get(Pod, name).to_dict()


def _one_of(client: lightkube.Client, labels: dict[str, Any]) -> Manifest:
    pods = [pod.to_dict() for pod in client.list(Pod, labels=labels)]
    lively = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    if not lively:
        sys.exit(f"error: no running pod with labels {labels}")
    return dict(lively[0])


def _execute(directory: Path, pod: Manifest, given: argparse.Namespace) -> int:
    """Run a program as the container would: with its environment, and its own programs only."""
    container = given.container or pod["spec"]["containers"][0]["name"]
    name = f"{pod['metadata']['namespace']}_{pod['metadata']['name']}_{container}.json"
    environment = json.loads((directory / "running" / name).read_text())["env"]
    program, *arguments = given.rest
    found = shutil.which(program, path=environment["PATH"])
    if found is None:
        sys.exit(f'error: exec: "{program}": executable file not found in $PATH')
    os.execve(found, [program, *arguments], environment)  # noqa: S606 - as a container starts it


async def _forward(service: Manifest | None, pod: Manifest, given: argparse.Namespace) -> None:
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for pair in given.rest:
            near, _, far = pair.rpartition(":")
            host, port = _place(pod, _target(service, pod, int(far)))
            server = await asyncio.start_server(_relay(host, port), given.address, int(near or far))
            servers.append(await stack.enter_async_context(server))
            bound = server.sockets[0].getsockname()[1]
            print(f"Forwarding from {given.address}:{bound} -> {port}", flush=True)  # noqa: T201 - as kubectl does
        await asyncio.gather(*(server.serve_forever() for server in servers))


def _target(service: Manifest | None, pod: Manifest, port: int) -> int:
    """Return the pod's port behind a port of a Service."""
    for each in service["spec"]["ports"] if service else []:
        if each["port"] == port:
            return _number(pod, each.get("targetPort", port))
    if service is not None:
        name = service["metadata"]["name"]
        sys.exit(f"error: Service {name} does not have a service port {port}")
    return port


def _number(pod: Manifest, port: int | str) -> int:
    named = {
        each.get("name"): each["containerPort"]
        for container in pod["spec"]["containers"]
        for each in container.get("ports", [])
    }
    return int(named.get(port, port))


def _place(pod: Manifest, port: int) -> tuple[str, int]:
    """Return the address of the process that plays a pod."""
    if elsewhere := pod["metadata"].get("annotations", {}).get(ADDRESS):
        host, _, number = elsewhere.rpartition(":")
        return host, int(number)
    return addresses.loopback(pod["status"]["podIP"]), port


def _relay(host: str, port: int) -> Any:  # noqa: ANN401 - what asyncio calls for a connection
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        print(f"Handling connection for {port}", flush=True)  # noqa: T201 - as kubectl does
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(host, port)
            await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer))
        writer.close()

    return take


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
