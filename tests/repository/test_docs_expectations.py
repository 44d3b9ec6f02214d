"""The figures that docs/arithmetic.md promises are those of the closed loops."""

import pytest

from tests.repository.test_docs import DOCS, section
from tests.stories.loops import expectations
from tests.stories.loops.expectations import DIRECT, LIKE, SCENES, WAYS, Scene, wakes

PAGE = DOCS / "arithmetic.md"
ONE_SEED = (1,)
"""Of those that the ranges are over; all of them take a minute and more."""


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
async def test_the_figures_of_a_scene_are_within_the_ranges_of_the_table(scene: Scene) -> None:
    """Each row has its place: two scenes may end with the same words."""
    cells = [
        [cell.strip() for cell in row.split("|")[1:-1]] for row in section(PAGE, "expectations")
    ]
    ways = [*enumerate(WAYS.values(), start=1)]
    if scene is not wakes:
        ways.append((1 + list(WAYS).index(LIKE), DIRECT))
    for number, way in ways:
        found = await expectations.figures(scene, way, ONE_SEED)
        first = [row[0] for row in cells].index(next(iter(found)))
        for row, (name, values) in zip(cells[first:], found.items(), strict=False):
            assert row[0] == name
            assert expectations.holds(row[number], values), (name, row[number], values)


@pytest.mark.nightly
async def test_the_table_is_what_all_seeds_give() -> None:
    assert section(PAGE, "expectations") == expectations.lines(await expectations.table())
