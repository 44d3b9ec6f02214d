"""Reads pages once per interval and splits their lines: what scraping costs at the least.

Started by `processes`, as `python -m benchmarks.reading PORT TARGETS SECONDS`; it ends with
SIGTERM. Each target has a connection of its own, and its own moment in the interval.
"""

import asyncio
import json
import signal
import sys

from benchmarks import pages


async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> int:
    """Ask for one page over an open connection, and return how many lines it has."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    _, _, length = head.partition(b"Content-Length: ")
    body = await reader.readexactly(int(length.partition(b"\r\n")[0]))
    return len(body.split(b"\n"))


async def _follow(port: int, node: int, first: float, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due = loop.time() + first
    while True:
        await asyncio.sleep(due - loop.time())
        await read(reader, writer, pages.path(node))
        due += seconds


async def main(port: int, targets: int, seconds: float) -> None:
    """Read until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    reading = [
        asyncio.create_task(_follow(port, node, seconds * node / targets, seconds))
        for node in range(targets)
    ]
    # `processes` waits for a port; this process listens on none.
    print(json.dumps({"event": "reading.started", "grpc_port": 0}), flush=True)
    await stop.wait()
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
