"""The benchmark of direct scraping: its pages, its reader, and what it refuses."""

import asyncio

import grpc
import pytest

from benchmarks import direct, pages, reading, world
from benchmarks.echo import Echo
from benchmarks.processes import ServerError
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.sources.scrape.exposition import parse

TRIGGERS = world.triggers(6)


def test_pages_show_the_load_of_every_pod_in_each_variant() -> None:
    shown = pages.nodes(TRIGGERS)
    expected = {pod: trigger.percent for trigger in TRIGGERS for pod in trigger.pods}

    assert [len(node) for node in shown] == [pages.VARIANTS] * 2
    for variant in range(pages.VARIANTS):
        found: dict[str, float] = {}
        for node in shown:
            for labels, value in zip(*parse(node[variant], 0), strict=True):
                if labels.name == pages.LOAD and labels.pod is not None:
                    found[labels.pod[1]] = value
        assert found == expected


def test_pages_differ_in_numbers_alone() -> None:
    first, second, *_ = pages.nodes(TRIGGERS)[0]
    heads = [
        [line.rpartition(b" ")[0] for line in page.splitlines() if not line.startswith(b"#")]
        for page in (first, second)
    ]

    assert first != second
    assert heads[0] == heads[1]


async def test_the_reference_reads_whole_pages_over_one_connection() -> None:
    shown = pages.nodes(TRIGGERS)
    async with pages.served(shown) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        found = [await reading.read(reader, writer, pages.path(1)) for _ in range(2)]
        writer.close()
        await writer.wait_closed()

    assert found == [len(page.split(b"\n")) for page in shown[1][:2]]


async def test_a_wrong_value_is_refused() -> None:
    server = grpc.aio.server()
    externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(Echo(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            asked = direct.Asked(TRIGGERS[0], channel)
            with pytest.raises(ServerError, match=r"150\.5 instead of 20"):
                await asked.is_answered()
    finally:
        await server.stop(None)
