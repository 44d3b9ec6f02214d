"""What follows from the committed figures: tables of two pages, and a picture.

`python -m benchmarks.page` writes all of it again.
"""

import re
from collections import Counter

from benchmarks import decided, results, tables
from benchmarks.results import ROOT, About, Results

PAGE, README = "docs/benchmarks.md", "README.md"
_MISSING = "Not measured yet.\n"
_BLOCK = re.compile(r"(<!-- (figures-[\w-]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def regenerate() -> None:
    """Write every file that follows from the committed figures."""
    for path, text in files(results.committed()).items():
        (ROOT / path).write_text(text, encoding="utf-8")


def files(found: Results) -> dict[str, str]:
    """Return the text of every file that follows from figures, by its path."""
    page, readme = ((ROOT / path).read_text(encoding="utf-8") for path in (PAGE, README))
    score = decided.committed()
    ways = {"figures-ways": tables.markdown(decided.WAYS_HEAD, decided.ways(score))}
    return {
        PAGE: put_blocks(page, blocks(found)),
        README: put_blocks(readme, ways),
        "docs/images/decisions.svg": decided.curves(score),
    }


def blocks(found: Results) -> dict[str, str]:
    """Return what is generated in the page, by the names of its marks."""
    made = {
        "goals": tables.markdown(tables.HEAD, tables.cells(results.rows(found))),
        "machine": tables.markdown(
            ["version", "when", "machine", "load before each benchmark"], _machines(found)
        ),
    }
    made["decisions"] = tables.markdown(decided.HEAD, decided.cells(decided.committed()))
    details = (each for result in found.values() for each in result.details)
    made |= {each.key: tables.markdown(each.head, each.cells) for each in details}
    return {f"figures-{name}": text for name, text in made.items()}


def _machines(found: Results) -> list[list[str]]:
    """Return a line for each machine and month, with all that was measured there."""
    loads: dict[tuple[str, str, str], list[str]] = {}
    for name, result in found.items():
        loads.setdefault(_about(result.about), []).append(f"{name} {result.about.load:g}")
    return [[*about, ", ".join(each)] for about, each in loads.items()]


def _about(about: About) -> tuple[str, str, str]:
    machine = f"{about.cores} cores, {about.system} {about.architecture}, Python {about.python}"
    return about.version, about.measured, machine


def put_blocks(page: str, made: dict[str, str]) -> str:
    """Return the page with these texts between their marks, and a sentence where there is none.

    Raises:
        ValueError: a page has no marks for a text, or has them twice.
    """
    marked = Counter(found[2] for found in _BLOCK.finditer(page))
    wrong = [name for name in {**marked, **made} if marked[name] != 1]
    if wrong:
        raise ValueError(f"a page has to have these marks once: {', '.join(wrong)}")
    return _BLOCK.sub(lambda found: f"{found[1]}{made.get(found[2], _MISSING)}{found[3]}", page)


if __name__ == "__main__":
    regenerate()
