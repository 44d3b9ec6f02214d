"""Texts become documents with positions, and no text is beyond what can be read or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.workbench.check import documents
from keda_gpu_scaler.workbench.check.documents import Node, Position, read
from tests.workbench.check.cases import FAILS, JOB, STAYS, report


def only(source: str) -> Node:
    """Return the only document of a text without problems."""
    (document,) = read(source).documents
    assert read(source).problems == ()
    return document


def problem(source: str) -> tuple[str, Position]:
    (one,) = read(source).problems
    return one.rule, one.position


def keys(source: str) -> list[list[str]]:
    """Return the keys of each document."""
    return [list(one.entries) for one in read(source).documents]


def test_keys_and_values_have_their_positions() -> None:
    document = only('# a\nspec:\n  triggers:\n    - type: x\nlast: {"é😀": 1, b: 2}\n')
    assert document.place("spec", "triggers") == Position(3, 3)
    assert document.place("spec", "missing") == Position(2, 1)
    assert document.place("spec", "triggers", "deeper") == Position(3, 3)
    (item,) = document.blocks("spec", "triggers")
    assert item.place("type") == Position(4, 7)
    assert document.place("last", "b") == Position(5, 17)
    nothing = only("key: null\nother: {deep: ~}\n")
    assert not nothing.has("key")
    assert nothing.get("other", "deep") is None
    assert nothing.block("key").entries == {}
    assert list(nothing.blocks("key")) == []
    assert nothing.text("other") == ""


@pytest.mark.parametrize(
    ("written", "kind", "number"),
    [
        ("70", "number", 70),
        ("-1_000", "number", -1000),
        ("0x1F", "number", 31),
        (".inf", "number", None),
        ("9" * 5000, "number", None),
        ("1e+06", "number", None),
        ("7e1", "number", None),
        ("-.5E-3", "number", None),
        ("08", "number", None),
        ("0o7", "number", 7),
        ("1_0.5", "number", None),
        ("1.2.3", "string", None),
        ("e5", "string", None),
        ("1e", "string", None),
        ("'7e1'", "string", None),
        ("y", "boolean", None),
        ("N", "boolean", None),
        ("'n'", "string", None),
        ("yn", "string", None),
        ("true", "boolean", None),
        ("Off", "boolean", None),
        ("~", "null", None),
        ("", "null", None),
        ("'70'", "string", 70),
        ("1:30", "string", None),
        ("2026-11-22", "string", None),
        ("!!str 70", "string", 70),
        ("!!int '70'", "number", 70),
        ("!Ref 70", "string", 70),
    ],
)
def test_scalars_are_typed_as_in_kubernetes(written: str, kind: str, number: int | None) -> None:
    document = only(f"key: {written}\n")
    assert document.entries["key"].value.kind == kind
    assert document.integer("key") == number


def test_documents_are_read_up_to_the_first_mistake() -> None:
    source = "a: &a 1\n---\nb: 2\n...\n--- # Source: chart/x.yaml\nc: 3\n"
    assert keys(source) == [["a"], ["b"], ["c"]]
    assert read(source).documents[-1].place("c") == Position(6, 1)
    for wrong in ("b: ]\n", "b: *a\n"):
        assert keys(f"a: &a 1\n---\n{wrong}---\nc: 3\n") == [["a"]]
        assert problem(f"a: &a 1\n---\n{wrong}---\nc: 3\n") == ("yaml-syntax", Position(3, 4))


@pytest.mark.parametrize(
    "source",
    ["", "# nothing\n\n---\n# nothing\n...\n", "--- text\n--- [1, 2]\n--- null\n"],
)
def test_directives_comments_and_empty_documents_say_nothing(source: str) -> None:
    assert read(source) == ((), ())
    assert keys(f"%YAML 1.2\n---\na: 1\n---\n{source}") == [["a"]]


def test_merged_keys_are_there_and_own_ones_win() -> None:
    document = only("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}\nd: {<<: 1}\n")
    assert (document.text("b", "x"), document.text("b", "y")) == ("1", "3")
    assert document.text("c", "z") == "4"
    assert document.block("d").entries == {}


@pytest.mark.parametrize(
    ("source", "rule", "position"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "duplicate-key", (4, 3)),
        ("a: *b\n", "yaml-syntax", (1, 4)),
        ("a: &a [*a]\n", "yaml-syntax", (1, 8)),
        ("? [a]\n: 1\n", "yaml-syntax", (1, 3)),
        ("b:\n  \x01\n", "yaml-syntax", (2, 3)),
        ("a: \ud800\n", "yaml-syntax", (1, 4)),
        ("{{ .Values.name }}: 1\n", "yaml-syntax", (1, 2)),
        ("b: 1\na: [\n\n", "yaml-syntax", (2, 1)),
        ("a: " + "[" * 100_000, "too-large", (1, documents.DEPTH_LIMIT + 4)),
        ("é" * (documents.BYTES_LIMIT // 2 + 1), "too-large", (1, 1)),
    ],
)
def test_what_cannot_be_read(source: str, rule: str, position: tuple[int, int]) -> None:
    assert problem(source) == (rule, position)


@pytest.mark.parametrize(
    ("source", "values"),
    [
        # Each value counts, each key, and an alias as all it stands for.
        ("---\n[a, b, c]\n" * 3, 3 * 4),
        ("a: &a {x: 1, y: 2}\nb: *a\n", 7 + 2 + 5),
        ("a: &a {x: 1, y: 2}\nb: {<<: *a}\n", 7 + 4 + 5),
    ],
)
def test_values_are_limited_in_number_over_all_documents(source: str, values: int) -> None:
    assert read(source, values_limit=values).problems == ()
    reading = read(f"{source}---\na: [\n", values_limit=values - 1)
    assert [one.rule for one in reading.problems] == ["too-large"]


def test_a_bomb_of_aliases_is_refused() -> None:
    first = "a: &a [" + "x, " * 100 + "]\n"
    bomb = first + "b: &b [" + "*a, " * 100 + "]\nc: [" + "*b, " * 100 + "]\n"
    assert [one.rule for one in read(bomb).problems] == ["too-large"]


LINES = STAYS + JOB + FAILS["fallback-to-zero"]
PIECES = st.sampled_from(
    [
        *LINES.splitlines(keepends=True),
        *("---\n", "...\n", "  - *a\n", "    - &a {x: &b [*a]}\n", "kind: List\nitems:\n"),
        *("  fallback:\n", "  idleReplicaCount: 0\n", "\t\n", "<<: *a\n", "metadata: null\n"),
        *("spec: []\n", "triggers: {}\n", "? |\n", "# keda-gpu-scaler: ignore x, wrong-type\n"),
    ]
)
ANYTHING = st.text(st.characters(codec=None, categories=None), max_size=50)


@given(st.lists(PIECES | ANYTHING, max_size=40).map("".join))
def test_any_pieces_of_objects_are_read_or_refused(source: str) -> None:
    for one in report(source).findings:
        assert one.why
        assert one.fix.endswith((".", "?"))
        assert one.why.isprintable()
        assert one.position.line >= 1
