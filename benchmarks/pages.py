"""The pages of made-up nodes with eight GPUs each, as dcgm-exporter writes them, over HTTP.

All lines of dcgm-exporter's default counters, of which less than half are GPU metrics that the
scaler knows. The load of a GPU is constant, so that the right answer is known; every other number
changes from page to page. A page is made once and sent often: the server is not what is measured.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from benchmarks import world

GPUS_PER_NODE = world.GPUS_PER_NODE
VARIANTS = 3
"""How many pages a node has, which are sent in turn."""
LOAD = "DCGM_FI_DEV_GPU_UTIL"
_METRICS = [
    *("SM_CLOCK", "MEM_CLOCK", "MEMORY_TEMP", "GPU_TEMP", "POWER_USAGE"),
    *("TOTAL_ENERGY_CONSUMPTION", "PCIE_REPLAY_COUNTER", "MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL"),
    *("XID_ERRORS", "FB_FREE", "FB_USED", "FB_RESERVED", "NVLINK_BANDWIDTH_TOTAL"),
    *("VGPU_LICENSE_STATUS", "UNCORRECTABLE_REMAPPED_ROWS", "CORRECTABLE_REMAPPED_ROWS"),
    *("ROW_REMAP_FAILURE", "PCIE_TX_THROUGHPUT", "PCIE_RX_THROUGHPUT"),
]
_SHARES = ["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"]
_PRIME = 7919
"""Spreads the made-up numbers."""


def path(node: int) -> str:
    """Return the path of a node's page."""
    return f"/nodes/{node}"


def page(node: int, variant: int, held: list[tuple[str, float]]) -> bytes:
    """Return a node's page.

    Args:
        node: its number.
        variant: which of its pages.
        held: the pod of each of its GPUs, with its load in percent.
    """
    labels = [
        f'gpu="{gpu}",UUID="GPU-{node:08}-1d61-4a64-8a2c-{gpu:012}",'
        f'pci_bus_id="00000000:{gpu:02X}:00.0",device="nvidia{gpu}",'
        f'modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-node-{node}",'
        'DCGM_FI_DRIVER_VERSION="535.161.08",container="server",'
        f'namespace="{world.NAMESPACE}",pod="{pod}"'
        for gpu, (pod, _) in enumerate(held)
    ]
    loads = [f"{percent:g}" for _, percent in held]
    drawn = [(variant * _PRIME + node * 31 + gpu * 17) % 1000 for gpu in range(len(held))]
    families = [(LOAD, loads)]
    families += [(f"DCGM_FI_DEV_{name}", [f"{number}" for number in drawn]) for name in _METRICS]
    families += [(name, [f"{number / 1000:.6f}" for number in drawn]) for name in _SHARES]
    return "".join(
        f"# HELP {name} What it is (in a unit).\n# TYPE {name} gauge\n"
        + "".join(
            f"{name}{{{shown}}} {number}\n" for shown, number in zip(labels, numbers, strict=True)
        )
        for name, numbers in families
    ).encode()


def nodes(triggers: list[world.Trigger]) -> list[list[bytes]]:
    """Return the pages of all nodes for these triggers' pods, one GPU each."""
    held = [(pod, trigger.percent) for trigger in triggers for pod in trigger.pods]
    split = [held[begin : begin + GPUS_PER_NODE] for begin in range(0, len(held), GPUS_PER_NODE)]
    return [
        [page(node, variant, part) for variant in range(VARIANTS)]
        for node, part in enumerate(split)
    ]


@contextlib.asynccontextmanager
async def served(shown: list[list[bytes]]) -> AsyncIterator[int]:
    """Serve pages on a port of 127.0.0.1, over connections that stay open; yield the port."""
    sent = [0] * len(shown)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                node = int(head.split(b" ")[1].rpartition(b"/")[2])
                body = shown[node][sent[node] % VARIANTS]
                sent[node] += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n" % len(body))
                writer.write(body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=len(shown))
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
