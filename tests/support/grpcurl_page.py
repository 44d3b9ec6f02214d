"""The grpcurl commands of docs/commands.md and what it shows for them, as a reader copies them."""

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
SECTION = "## Ask with grpcurl"
_STEP = re.compile(
    r"(?P<command>(?:^ {4}[^\n]*\n)+)(?:\n```json\n(?P<output>[^`]*)```\n)?", re.MULTILINE
)


class Command(NamedTuple):
    """A command, and the output shown below it, if there is one."""

    text: str
    output: str | None


def commands(program: str) -> list[Command]:
    """Return the page's commands that start with a program, in their order."""
    section = PAGE.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    found = []
    for step in _STEP.finditer(section):
        text = re.sub(r"^ {4}", "", step["command"], flags=re.MULTILINE)
        parts = re.split(rf"^(?={program})", text, flags=re.MULTILINE)
        found += [Command(one, step["output"]) for one in parts if one.startswith(program)]
    return found
