"""The README's commands and the outputs it shows, as a reader would copy them."""

import re
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).parents[2] / "README.md"
SECTION = "## Debug"
_STEP = re.compile(
    r"(?P<command>(?:^ {4}[^\n]*\n)+)(?:\n```json\n(?P<output>[^`]*)```\n)?", re.MULTILINE
)


class Command(NamedTuple):
    """A command, and the output shown below it, if there is one."""

    text: str
    output: str | None


def commands(program: str) -> list[Command]:
    """Return the README's commands that start with a program, in their order."""
    section = README.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    found = []
    for step in _STEP.finditer(section):
        text = re.sub(r"^ {4}", "", step["command"], flags=re.MULTILINE)
        parts = re.split(rf"^(?={program})", text, flags=re.MULTILINE)
        found += [Command(one, step["output"]) for one in parts if one.startswith(program)]
    return found
