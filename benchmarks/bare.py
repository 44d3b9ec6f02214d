"""A server that does nothing, with the libraries for what the scaler cannot do without.

gRPC to answer KEDA, an HTTP client to query a source, and settings from the environment. Started by
`processes`, as `python -m benchmarks.bare`; it ends with SIGTERM.
"""

import asyncio
import json
import signal

import grpc
import httpx
from pydantic_settings import BaseSettings


class Settings(BaseSettings):
    """One setting from the environment."""

    grpc_address: str = "127.0.0.1:0"


async def main() -> None:
    """Listen until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with httpx.AsyncClient():
        server = grpc.aio.server()
        port = server.add_insecure_port(Settings().grpc_address)
        await server.start()
        print(json.dumps({"event": "bare.listening", "grpc_port": port}), flush=True)
        await stop.wait()
        await server.stop(None)


if __name__ == "__main__":
    asyncio.run(main())
