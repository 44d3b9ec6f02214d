"""Queries to one server: which facts they become."""

import asyncio

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources.query_client import QueryClient, countable
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import Client
from tests.support.clocks import Clock


async def test_a_query_is_one_fact_unless_a_fault_of_ours_ends_it() -> None:
    seen: list[facts.Fact] = []
    client = QueryClient("default", Client(timeout_seconds=1), seen.append, Clock())
    with client.reported("snapshot"):
        pass
    with pytest.raises(KeyError), client.reported("snapshot"):
        raise KeyError("a fault")
    with pytest.raises(asyncio.CancelledError), client.reported("snapshot"):
        raise asyncio.CancelledError
    await client.http.close()
    assert seen == [
        facts.Queried("default", "snapshot", 0.0, None),
        facts.Queried("default", "snapshot", 0.0, facts.GIVEN_UP),
    ]


def test_what_dcgm_shows_instead_of_a_number_is_no_demand() -> None:
    words = "2147483632, which is what DCGM shows instead of a number that it lacks"
    with pytest.raises(errors.SourceMalformedError, match=words):
        countable(2147483632.0)
    assert countable(2147483631.0) == 2147483631.0
