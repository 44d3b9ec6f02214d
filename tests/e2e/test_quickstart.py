"""The quick start without a GPU, command by command, as it is printed."""

import re

import pytest

from tests.e2e.release import everything
from tests.e2e.shell import Shell
from tests.support import guides, printed
from tests.support.processes import until

pytestmark = pytest.mark.xdist_group("live")
FORWARDED = {"127.0.0.1:9400": "simulator.quickstart.svc:9400"}
"""What the page forwards to the reader's machine: here the Services' names lead there."""
LOOKS = re.compile(r"kubectl (get|logs) ")
"""What a command that changes nothing begins with."""
PATIENCE_SECONDS = 60.0
"""How long a person looks again: a reader's window is seconds, and the machine may be busy."""


async def test_the_quick_start_without_a_gpu_works_as_it_is_printed(shell: Shell) -> None:
    before = await everything(shell)
    for step in guides.steps(guides.page("quickstart")):
        if not (step.is_(guides.NOT_RUN) or step.is_(guides.STAYS_OPEN)):
            await _type(shell, step)

    async def nothing_is_left() -> bool:
        return not await everything(shell) - before

    await until(nothing_is_left, PATIENCE_SECONDS, "nothing is left of the quick start")


async def _type(shell: Shell, step: guides.Step) -> None:
    """Type the commands of one step; as a person who looks again, where they only look."""
    commands = f"NODE=worker-0\n{step.commands}"
    for there, here in FORWARDED.items():
        commands = commands.replace(there, here)
    done = await shell.run(commands)

    # Which steps were decided on the way up depends on how fast the machine is.
    output = "" if "decision.changed" in step.commands else step.output

    async def shown() -> bool:
        nonlocal done
        if done.status == 0 and (not output or printed.is_shown_by(done.output, output)):
            return True
        assert all(map(LOOKS.match, step.commands.strip().splitlines())), str(done)
        done = await shell.run(commands)
        return False

    try:
        await until(shown, PATIENCE_SECONDS, f"{step.section!r} prints\n{output}")
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{done}") from error
