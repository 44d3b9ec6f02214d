"""The standard health service: SERVING until the server drains. It says nothing about sources.

grpc's own health servicer keeps each Watch open until the caller leaves, so one watcher would hold
a stopping server for its whole grace. Here `draining` is the only state, and it ends them.
"""
# ruff: noqa: N802 - the methods carry the names of the health contract

import asyncio
from typing import Any, TypeAlias

import grpc
from grpc_health.v1 import health_pb2 as pb

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Health:
    """Tells whether this process takes calls, for each of its services and for all."""

    def __init__(self, services: frozenset[str], draining: asyncio.Event) -> None:
        self._services = services | {""}
        self._draining = draining

    async def Check(
        self, request: pb.HealthCheckRequest, context: Context
    ) -> pb.HealthCheckResponse:
        """Answer once; a service that is not here is NOT_FOUND."""
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service here")
        return self._answer(request.service)

    async def List(
        self, _request: pb.HealthListRequest, _context: Context
    ) -> pb.HealthListResponse:
        """Answer for every service."""
        return pb.HealthListResponse(
            statuses={service: self._answer(service) for service in self._services}
        )

    async def Watch(self, request: pb.HealthCheckRequest, context: Context) -> None:
        """Answer now and when it changes, which happens once: then the stream ends."""
        first = self._answer(request.service)
        await context.write(first)
        await self._draining.wait()
        last = self._answer(request.service)
        if last != first:
            await context.write(last)

    def _answer(self, service: str) -> pb.HealthCheckResponse:
        if service not in self._services:
            return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN)
        if self._draining.is_set():
            return pb.HealthCheckResponse(status=pb.HealthCheckResponse.NOT_SERVING)
        return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVING)
