"""The commands on pages that readers follow: which a test types, and which it cannot, and why not.

A block `sh` of a page is a step (`tests/support/guides.py`). A scenario types those of the quick
start on a real cluster. Of the other pages `tests/repository/test_docs_typed.py` types a step,
unless

- a page for readers with a cluster has the same words, or
- the page remarks `<!-- not run: reason -->` about it.

    python -m tests.support.page_commands  # prints how many there are of each kind
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.support import guides

GUIDES = (*guides.TRANSLATED, "troubleshooting")
"""Pages for readers with a cluster. A scenario in tests/e2e follows the first one to its end."""
PAGES = (
    "install",
    "how-it-works",
    "arithmetic",
    "unknown",
    "zero",
    "platforms",
    "llm",
    "shared-gpus",
    "production",
    "faq",
    "glossary",
    "roadmap",
    "specification",
)
"""Pages whose commands are typed without a cluster, or say why not."""
NEEDS = "needs"
"""`<!-- needs: helm -->`: a program that is not Python, which `make test-servers` has."""
KINDS = frozenset({guides.NOT_RUN, guides.FAILS, NEEDS})
"""What a page may remark about a step."""


@dataclass(frozen=True)
class Command:
    """One step of a page."""

    page: str
    number: int
    step: guides.Step

    @cached_property
    def name(self) -> str:
        """What tests call it."""
        return f"{self.page}-{self.number}"

    @property
    def reason(self) -> str | None:
        """Why no test types it; None: one does."""
        said = [one.words for one in self.step.remarks if one.kind == guides.NOT_RUN]
        return said[0] if said else None

    @property
    def needs(self) -> tuple[str, ...]:
        """The programs that it needs."""
        return tuple(one.words for one in self.step.remarks if one.kind == NEEDS)


def commands(*pages: str) -> Iterator[Command]:
    """Yield every step of these pages."""
    for page in pages:
        for number, step in enumerate(guides.steps(guides.page(page)), 1):
            yield Command(page, number, step)


def is_in_a_guide(command: Command) -> bool:
    """Tell whether a page for readers with a cluster has the same words."""
    words = {one.step.commands for one in commands(*GUIDES) if one.reason is None}
    return command.step.commands in words


def typed() -> list[Command]:
    """Return the commands that are typed without a cluster."""
    return [one for one in commands(*PAGES) if one.reason is None and not is_in_a_guide(one)]


def counted() -> str:
    """Return how many steps tests type, and how many not, with the reasons."""
    every = list(commands(*GUIDES, *PAGES))
    left_out = [one for one in every if one.reason is not None]
    scenario = [one for one in commands(GUIDES[0]) if one.reason is None]
    by_tests = len(scenario) + len(typed())
    in_clusters = len(every) - len(left_out) - by_tests
    count = f"{by_tests} typed by tests, {in_clusters} for a cluster, {len(left_out)} not run"
    reasons = [f"  docs/{one.page}.md: {one.reason}" for one in left_out]
    return "\n".join([f"Commands on pages to follow: {count}", *reasons])


def is_command(line: str) -> bool:
    """Tell whether an indented line of a page is a command."""
    return bool(re.match(r" {4,}(?:\$ )?(?:keda-gpu-scaler|kubectl|helm|make|curl|docker) ", line))


if __name__ == "__main__":
    sys.stdout.write(f"{counted()}\n")
