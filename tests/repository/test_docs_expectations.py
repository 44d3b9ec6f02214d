"""The figures that docs/expectations.md promises are those of the closed loops."""

import pytest

from tests.repository.test_docs import ROOT, section
from tests.stories.loops import expectations
from tests.stories.loops.expectations import SCENES, WAYS, Scene

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "expectations.md"
ONE_SEED = (1,)
"""Of those that the ranges are over; all of them take a minute and more."""


def shown() -> list[list[str]]:
    """Return the cells of the table, its rows without the head."""
    rows = section(PAGE, "expectations")
    assert rows[:2] == expectations.lines([["", *WAYS]])
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows[2:]]


@pytest.mark.parametrize("scene", SCENES)
async def test_the_figures_of_a_scene_are_within_the_ranges_of_the_table(scene: Scene) -> None:
    """Each row has its place: two scenes may end with the same words."""
    before = shown()
    for number, way in enumerate(WAYS.values(), start=1):
        found = await expectations.figures(scene, way, ONE_SEED)
        first = [row[0] for row in before].index(next(iter(found)))
        for row, (said, values) in zip(before[first:], found.items(), strict=False):
            assert row[0] == said
            assert expectations.holds(row[number], values), (said, row[number], values)


@pytest.mark.nightly
async def test_the_table_is_what_all_seeds_give() -> None:
    assert section(PAGE, "expectations") == expectations.lines(await expectations.table())


@pytest.mark.parametrize(
    ("cell", "value", "is_held"),
    [
        ("4", 4, True),
        ("4", 3, False),
        ("2 to 2.8", 2.8, True),
        ("2 to 2.8", 2.9, False),
        ("never", None, True),
        ("never", 3, False),
        ("3 to 5", None, False),
        ("3, or never", None, True),
        ("3, or never", 3, True),
    ],
)
def test_a_figure_holds_within_the_range_of_its_cell(
    cell: str,
    value: float | None,
    is_held: bool,  # noqa: FBT001 - an example
) -> None:
    assert expectations.holds(cell, [value]) == is_held
