"""Start the kubelet in small; it runs until it is ended."""

import argparse
import asyncio
import contextlib
import logging
import signal
from pathlib import Path

import lightkube

from tests.e2e.kubelet.logs import Logs
from tests.e2e.kubelet.nodes import Nodes
from tests.e2e.kubelet.setup import House


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--directory", type=Path, required=True, help="for files and logs of pods")
    parser.add_argument("--proxy", required=True, help="URL of the cluster's network")
    parser.add_argument("--certificate", type=Path, required=True, help="of the server of logs")
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--log-port", type=int, required=True)
    parser.add_argument("--node", action="append", required=True, help="the name of one to play")
    return parser.parse_args()


async def _run(given: argparse.Namespace) -> None:
    _end_at(signal.SIGTERM)
    for name in ("logs", "pods", "running"):
        (given.directory / name).mkdir(parents=True)
    configuration = lightkube.KubeConfig.from_file(given.kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="kubelet", trust_env=False)
    async with contextlib.aclosing(client), asyncio.TaskGroup() as group:
        nodes = Nodes(House(client, given.kubeconfig, given.directory, given.proxy), given.node)
        group.create_task(Logs(given.directory).serve(given.log_port, given.certificate, given.key))
        await nodes.register(given.log_port)
        group.create_task(nodes.follow())


def _end_at(number: int) -> None:
    """End with all processes of pods when this signal comes."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(number, task.cancel)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for chatty in ("httpx", "httpx2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_run(_arguments()))
