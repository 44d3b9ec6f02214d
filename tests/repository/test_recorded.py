"""What the scaler makes of answers that real servers gave, and that they still give them."""

import os
from pathlib import Path

import pytest

from tests.support import recorded
from tests.support.prometheus import KINDS, each
from tests.support.recorded import ENDS, SITUATIONS, Tape


@pytest.mark.slow
@pytest.mark.parametrize("server", KINDS)
@pytest.mark.parametrize("situation", SITUATIONS)
async def test_the_decision_is_right_by_what_a_server_answered(situation: str, server: str) -> None:
    tape = Tape(ENDS[situation], recorded.read(server)[situation])
    decision = await recorded.decided(tape)
    assert SITUATIONS[situation].follows(decision), decision
    assert tape.asked == tape.answers.keys()


@pytest.mark.parametrize("name", each())
async def test_a_server_still_answers_what_was_recorded(name: str, tmp_path: Path) -> None:
    """With RECORD=1 in the environment, what it answers now is recorded."""
    tapes: dict[str, dict[str, object]] = {}
    async with KINDS[name](tmp_path) as server:
        for situation, expected in SITUATIONS.items():
            await server.write(expected.series(ENDS[situation]))
            tape = Tape(ENDS[situation], {}, server.url)
            decision = await recorded.decided(tape)
            assert expected.follows(decision), (situation, decision)
            tapes[situation] = tape.answers
    if os.environ.get("RECORD"):
        recorded.write(name, tapes)
    assert recorded.read(name) == tapes
