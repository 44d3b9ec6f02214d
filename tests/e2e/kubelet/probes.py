"""The probes of a pod's process: by HTTP, gRPC, TCP, or a command."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.kubelet.files import Manifest

_GOOD = range(200, 400)
_NO_PROXY = [("grpc.enable_http_proxy", 0)]


@dataclass(frozen=True, slots=True)
class Target:
    """The container that is probed."""

    host: str
    """The loopback address of its pod."""
    ports: Mapping[str, int]
    """The named ports of the container."""
    environment: Mapping[str, str]

    def port(self, named: str | int) -> int:
        """Return the number of a port that may be named."""
        return self.ports[named] if isinstance(named, str) and named in self.ports else int(named)


async def succeeds(probe: Manifest, target: Target) -> bool:
    """Probe once; one that takes longer than its timeout has failed."""
    with contextlib.suppress(OSError, TimeoutError, httpx.HTTPError, grpc.RpcError):
        async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
            return await _answers(probe, target)
    return False


async def _answers(probe: Manifest, target: Target) -> bool:
    match probe:
        case {"httpGet": request}:
            return await _http(request, target)
        case {"grpc": call}:
            return await _grpc(call, target)
        case {"tcpSocket": {"port": port}}:
            _, writer = await asyncio.open_connection(target.host, target.port(port))
            writer.close()
            return True
        case {"exec": {"command": command}}:
            return await _command(command, target.environment)
    message = f"this kubelet knows no probe such as {probe}"
    raise ValueError(message)


async def _http(request: Manifest, target: Target) -> bool:
    """Probe as the kubelet does, which trusts every certificate."""
    scheme = request.get("scheme", "HTTP").lower()
    url = f"{scheme}://{target.host}:{target.port(request['port'])}{request.get('path', '/')}"
    headers = {each["name"]: each["value"] for each in request.get("httpHeaders", [])}
    async with httpx.AsyncClient(verify=False, trust_env=False) as client:  # noqa: S501 - see above
        return (await client.get(url, headers=headers)).status_code in _GOOD


async def _grpc(call: Manifest, target: Target) -> bool:
    address = f"{target.host}:{target.port(call['port'])}"
    async with grpc.aio.insecure_channel(address, options=_NO_PROXY) as channel:
        question = health_pb2.HealthCheckRequest(service=call.get("service", ""))
        answer = await health_pb2_grpc.HealthStub(channel).Check(question)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def _command(command: list[str], environment: Mapping[str, str]) -> bool:
    process = await asyncio.create_subprocess_exec(
        shutil.which(command[0], path=environment["PATH"]) or command[0],
        *command[1:],
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        return await process.wait() == os.EX_OK
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
