"""Claims about docs/compare.md: its table is counted from tests that exist and run."""

import ast
import functools

import pytest

from tests.repository import features
from tests.support.go_modules import ROOT

PROOFS = sorted({proof for row in features.FEATURES for proof in row.proof})


@functools.cache
def functions(file: str) -> dict[str, set[str]]:
    """Return the tests of a file, each with the names of its decorators."""
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return {
        node.name: {ast.unparse(each).split("(")[0].split(".")[-1] for each in node.decorator_list}
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


@pytest.mark.parametrize("proof", PROOFS)
def test_what_proves_a_row_is_a_test_that_runs(proof: str) -> None:
    file, _, name = proof.partition("::")
    found = functions(file)
    assert found
    for each in [name] if name else found:
        assert not found[each] & {"skip", "xfail"}


def test_a_row_that_no_test_proves_says_what_is_missing() -> None:
    assert [row.name for row in features.FEATURES if not row.proof and not row.missing] == []


@pytest.mark.parametrize("row", features.FEATURES, ids=lambda row: row.name)
def test_every_peer_has_a_verdict(row: features.Feature) -> None:
    assert len(row.peers) == len(features.PEERS)
    assert set(row.peers) <= features.WORDS.keys()


def test_the_page_is_made_from_the_rows() -> None:
    assert features.PAGE.read_text() == features.text()
