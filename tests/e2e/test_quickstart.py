"""The quick starts, command by command, as they are printed."""

import pytest

from tests import guides
from tests.e2e.reader import reader
from tests.e2e.shell import Shell

pytestmark = pytest.mark.xdist_group("live")


async def test_the_quick_start_without_a_gpu_works_as_it_is_printed(shell: Shell) -> None:
    async with reader(shell) as somebody:
        await somebody.follow(guides.page("quickstart"))
