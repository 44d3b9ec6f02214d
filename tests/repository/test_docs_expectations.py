"""The figures that docs/arithmetic.md promises are those of the closed loops."""

import pytest

from tests.repository.test_docs import DOCS, section
from tests.stories.loops import expectations


@pytest.mark.nightly
async def test_a_climb_takes_as_long_as_the_page_says() -> None:
    assert section(DOCS / "arithmetic.md", "climbs") == expectations.lines(
        await expectations.climbs()
    )


@pytest.mark.nightly
async def test_the_table_is_what_all_seeds_give() -> None:
    found = expectations.lines(await expectations.table())
    assert section(DOCS / "arithmetic.md", "expectations") == found
