"""Claims about the tests themselves."""

import ast
from collections.abc import Iterator

import pytest

from tests.repository.test_docs import ROOT

pytestmark = pytest.mark.slow

CLOCKS = {
    *("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns"),
    *("now", "utcnow", "today"),
}


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run at import: of a function, its defaults and decorators."""
    yield node
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        parts = [node.args, *getattr(node, "decorator_list", [])]
    for part in parts:
        yield from run_at_import(part)


def clocks_read_at_import(source: str) -> list[int]:
    """Return the lines that read a clock at import."""
    calls = [node for node in run_at_import(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if ast.unparse(call.func).split(".")[-1] in CLOCKS]


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_no_module_reads_a_clock_when_it_is_imported(folder: str) -> None:
    """Its tests may run much later, and the times they write would be too old by then."""
    read = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / folder).rglob("*.py")
        if (lines := clocks_read_at_import(path.read_text()))
    }
    assert read == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("NOW = time.time() // 15 * 15", [1]),
        ("class Clock:\n    began = monotonic()", [2]),
        ("@given(datetime.datetime.now(UTC))\ndef test() -> None: ...", [1]),
        ("async def ask(at=time.time(), *, now=loop.time()): ...", [1, 1]),
        ("def test() -> None:\n    now = time.time()", []),
        ("clock = time.monotonic\nlater = lambda: time.time() + 5", []),
    ],
)
def test_what_reads_a_clock_at_import_is_found(source: str, lines: list[int]) -> None:
    assert clocks_read_at_import(source) == lines
