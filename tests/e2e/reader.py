"""A reader who follows a page: types every command, and compares what it prints with the page."""

import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from tests.e2e.lab import PATIENCE_SECONDS, Lab
from tests.e2e.shell import Done, Shell
from tests.e2e.terminal import Terminal, terminal
from tests.support import guides, printed
from tests.support.processes import until

LOOKING_SECONDS = 60.0
"""How long a person looks again: a reader's window is seconds, and the machine may be busy."""
_LOOK_AROUND = """
kubectl get pods,scaledobjects,hpa -A
kubectl logs -n keda -l app.kubernetes.io/name=keda-gpu-scaler --tail=30
"""
_LOOKS = re.compile(r"(kubectl (get|logs)|grpcurl|decisions) ")
"""What a command that changes nothing begins with."""
Scene = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Reader:
    """A person with a page and two terminals."""

    shell: Shell
    terminal: Terminal
    scenes: Mapping[str, Scene] = field(default_factory=dict)
    """The events that the page describes between commands, by its words."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names here, and their names on the page."""
    typed: list[str] = field(default_factory=list)
    """All commands so far with their output: the failure message of a page."""

    async def follow(self, path: Path) -> None:
        """Follow all steps of a page, in its order."""
        for step in guides.steps(path):
            for scene in step.scenes:
                await self.scenes[scene]()
            if not step.is_(guides.NOT_RUN):
                await self._take(step)

    async def _take(self, step: guides.Step) -> None:
        done = await (self._leave_open(step) if step.is_(guides.STAYS_OPEN) else self._type(step))
        self.typed.append(str(done))
        if (done.status != 0) != step.is_(guides.FAILS):
            await self._fail(f"a command of {step.section!r} ends with {done.status}")
        if step.output is not None and not self._shows(step.output, done):
            await self._fail(f"{step.section!r} shows what is not printed:\n{step.output}")

    def _shows(self, output: str, done: Done) -> bool:
        return printed.is_shown_by(self._as_on_the_page(done.output), output)

    async def _fail(self, why: str) -> NoReturn:
        around = await self.shell.run(_LOOK_AROUND)
        raise AssertionError("\n".join([why, *self.typed, str(around)]))

    async def _type(self, step: guides.Step) -> Done:
        """Type the commands; as a person who looks again, where they only look."""
        done = await self.terminal.type(step.commands, PATIENCE_SECONDS)
        only_looks = all(map(_LOOKS.match, step.commands.strip().splitlines()))
        if step.output is None or not only_looks:
            return done
        output = step.output

        async def shown() -> bool:
            nonlocal done
            if not self._shows(output, done):
                done = await self.terminal.type(step.commands, PATIENCE_SECONDS)
            return self._shows(output, done)

        with contextlib.suppress(TimeoutError):  # then it is shown what there is instead
            await until(shown, LOOKING_SECONDS, step.section)
        return done

    async def _leave_open(self, step: guides.Step) -> Done:
        return Done(step.commands, 0, await self.shell.keep(step.commands.strip()))

    def _as_on_the_page(self, text: str) -> str:
        for here, there in self.names.items():
            text = text.replace(here, there)
        return text


@contextlib.asynccontextmanager
async def reader(
    shell: Shell,
    scenes: Mapping[str, Scene] | None = None,
) -> AsyncIterator[Reader]:
    """Open the terminals on a cluster."""
    async with terminal(shell) as opened:
        yield Reader(shell, opened, scenes or {})


async def prints(lab: Lab, shell: Shell, command: str, words: str) -> None:
    """Wait until a command prints these words."""

    async def printed_them() -> bool:
        return words in (await shell.run(command)).output

    await lab.wait(printed_them, f"{command} prints {words!r}")
