"""Queries to one server: which facts they become."""

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources.query_client import QueryClient, countable
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import Answer, Client
from tests.support.clocks import Clock

ANSWER = Answer(200, "application/json", b"{}")


async def request() -> Answer:
    """Answer every query with the same."""
    return ANSWER


@pytest.mark.parametrize(
    ("raised", "stated"),
    [
        (None, [None]),
        (errors.SourceMalformedError("no JSON"), ["no JSON"]),
        # A fault of ours is neither an answer of the server nor an error of it.
        (KeyError("a fault"), []),
    ],
)
async def test_a_query_is_one_fact_with_the_servers_error_if_there_is_one(
    raised: Exception | None, stated: list[str | None]
) -> None:
    seen: list[facts.Fact] = []

    def parse(answer: Answer) -> Answer:
        if raised is not None:
            raise raised
        return answer

    client = QueryClient("default", Client(timeout_seconds=1), seen.append, Clock())
    if raised is None:
        assert await client.fetch("snapshot", request(), parse) is ANSWER
    else:
        with pytest.raises(type(raised)):
            await client.fetch("snapshot", request(), parse)
    await client.close()
    assert seen == [facts.Queried("default", "snapshot", 0.0, error) for error in stated]


def test_what_dcgm_shows_instead_of_a_number_is_no_demand() -> None:
    words = "2147483632, which is what DCGM shows instead of a number that it lacks"
    with pytest.raises(errors.SourceMalformedError, match=words):
        countable(2147483632.0)
    assert countable(2147483631.0) == 2147483631.0
