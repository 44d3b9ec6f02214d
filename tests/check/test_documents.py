"""Texts become documents with positions, and no text is beyond what can be read or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.check import documents
from keda_gpu_scaler.check.documents import read
from keda_gpu_scaler.check.findings import Position
from keda_gpu_scaler.check.nodes import Block, Sequence
from tests.check.cases import found, report, text

OBJECT = text("too-large")
WRONG = OBJECT.replace("threshold", "treshold")


def only(source: str) -> Block:
    """Return the only document of a text without problems."""
    (document,) = read(source).documents
    assert read(source).problems == ()
    return document


def problem(source: str) -> tuple[str, Position]:
    (one,) = read(source).problems
    return one.rule, one.position


def test_keys_and_values_have_their_positions() -> None:
    document = only("# a\nspec:\n  triggers:\n    - type: x\n")
    assert document.place("spec", "triggers") == Position(3, 3)
    assert document.place("spec", "missing") == Position(2, 1)
    assert document.place("spec", "triggers", "deeper") == Position(3, 3)
    (item,) = document.blocks("spec", "triggers")
    assert item.place("type") == Position(4, 7)


def test_columns_count_characters() -> None:
    assert only('{"é😀": 1, b: 2}').place("b") == Position(1, 11)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("70", "number"),
        ("-0.5e3", "number"),
        ("0x1F", "number"),
        ("1_000", "number"),
        (".inf", "number"),
        ("true", "boolean"),
        ("yes", "boolean"),
        ("Off", "boolean"),
        ("y", "boolean"),
        ("N", "boolean"),
        ("~", "null"),
        ("", "null"),
        ("null", "null"),
        ("text", "string"),
        ("'70'", "string"),
        ('"true"', "string"),
        ("|-\n  70", "string"),
        ("1:30", "string"),
        ("2026-11-22", "string"),
        ("!!str 70", "string"),
        ("!!int '70'", "number"),
        ("! 70", "string"),
        ("!Ref 70", "string"),
    ],
)
def test_scalars_have_the_type_that_kubernetes_sees(written: str, kind: str) -> None:
    entry = only(f"key: {written}\n").entries["key"]
    assert entry.value.kind == kind


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("8", 8),
        ("+7", 7),
        ("-1_000", -1000),
        ("010", 8),
        ("09", 9),
        ("0", 0),
        ("0x10", 16),
        ("-0b11", -3),
        ("0o17", 15),
        ("8.0", 8),
        ("1e1", 10),
        (".5", None),
        ("1e400", None),
        (".inf", None),
        ("08.5", None),
        ("'8'", None),
        ("1" * 41, None),
    ],
)
def test_a_whole_number_is_what_kubernetes_reads(written: str, number: int | None) -> None:
    assert only(f"key: {written}\n").integer("key") == number


@given(st.integers(-(2**63), 2**64 - 1))
def test_whole_numbers_are_read_in_every_base(number: int) -> None:
    sign = "-" if number < 0 else ""
    for written in (f"{number}", *(f"{sign}{abs(number):#{base}}" for base in "xob")):
        if len(written) <= 40:
            assert only(f"key: {written}\n").integer("key") == number


def test_lines_end_where_they_do_for_editors() -> None:
    document = only('a: "x\u2028y\u0085z"\nb: "1\r2"\r\n  \nc: 1\n')
    assert document.place("b") == Position(2, 1)
    assert document.place("c") == Position(4, 1)
    assert only('{a: "\u2028", b: 2}').place("b") == Position(1, 10)
    assert [place.line for place in found(f"# \u2028\n{WRONG}")] == [
        place.line + 1 for place in found(WRONG)
    ]
    ignored = WRONG.replace(
        "  treshold", "  # keda-gpu-scaler: ignore unknown-key\n        treshold"
    )
    assert "unknown-key" not in {place.rule for place in found(f"# \u2028\n{ignored}")}


def test_null_is_no_value() -> None:
    document = only("key: null\nother: {deep: ~}\n")
    assert not document.has("key")
    assert document.get("other", "deep") is None
    assert document.block("key").entries == {}
    assert list(document.blocks("key")) == []
    assert document.text("other") == ""
    assert document.integer("other") is None
    assert only("key: 1.5").integer("key") is None


def test_each_document_is_read_by_itself() -> None:
    source = "a: 1\n---\nb: [\n---\nc: 3\n...\nd: 4\n--- # Source: chart/x.yaml\ne: 5\n"
    reading = read(source)
    assert [list(one.entries) for one in reading.documents] == [["a"], ["c"], ["d"], ["e"]]
    assert [one.place("e") for one in reading.documents][-1] == Position(9, 1)
    (one,) = reading.problems
    assert (one.rule, one.position.line) == ("yaml-syntax", 3)


def test_a_marker_ends_a_document_also_within_a_string() -> None:
    assert found(f"text: |\n  a\n---\n{OBJECT}") == []
    assert [one.rule for one in read('a: "b\n---\nc: 1\n').problems] == ["yaml-syntax"]
    assert [list(one.entries) for one in read("a: |\n  ---x\n  ...\nb: 1").documents] == [
        ["a", "b"]
    ]


def test_directives_comments_and_empty_documents_say_nothing() -> None:
    assert read("%YAML 1.2\n---\na: 1\n").problems == ()
    assert read("# nothing\n\n---\n---\n# nothing\n...\n") == ((), ())
    assert read("--- text\n--- [1, 2]\n--- null\n") == ((), ())
    assert read("") == read("\r") == ((), ())


def test_merged_keys_are_there_and_own_ones_win() -> None:
    document = only("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}\nd: {<<: 1}\n")
    assert (document.text("b", "x"), document.text("b", "y")) == ("1", "3")
    assert document.text("c", "z") == "4"
    assert document.block("d").entries == {}
    assert list(only('"<<": 1').entries) == ["<<"]


def test_an_alias_is_the_same_node() -> None:
    document = only("a: &a [1]\nb: *a\n")
    assert document.get("a") is document.get("b")
    assert isinstance(document.get("a"), Sequence)


def test_a_key_that_is_there_twice_is_found_at_the_second() -> None:
    assert problem("a: 1\nb:\n  c: 1\n  c: 2\n") == ("duplicate-key", Position(4, 3))


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("a: *b\n", Position(1, 4)),
        ("a: &a [*a]\n", Position(1, 8)),
        ("? [a]\n: 1\n", Position(1, 3)),
        ("a: {b: 1}}\n", Position(1, 10)),
        ("a: 1\r---\rb: 1\n", Position(1, 10)),
        ("a: \x01\n", Position(1, 1)),
        ("a: \ud800\n", Position(1, 1)),
        ("{{ .Values.name }}: 1\n", Position(1, 2)),
        ("b: 1\na: '\n", Position(2, 4)),
        ("a: {b: 1\n", Position(1, 4)),
        ("b: 1\na: [\n\n", Position(2, 1)),
    ],
)
def test_what_cannot_be_read_is_a_problem_at_its_place(source: str, position: Position) -> None:
    assert problem(source) == ("yaml-syntax", position)


def test_what_is_too_deep_is_refused() -> None:
    limit = documents.DEPTH_LIMIT
    assert read("a: " + "[" * (limit - 1) + "]" * (limit - 1)).problems == ()
    assert problem("a: " + "[" * 100_000) == ("too-large", Position(1, limit + 4))


def test_a_bomb_of_aliases_is_refused() -> None:
    limit = documents.ALIASES_LIMIT
    assert read("a: &a 1\nb: [" + "*a, " * limit + "]").problems == ()
    assert problem("a: &a 1\nb: [" + "*a, " * (limit + 1) + "]")[0] == "too-large"


def test_an_alias_counts_as_all_that_it_stands_for() -> None:
    anchored = "a: &a {x: 1, y: 2}\n"  # 7 values, of which the anchor is 5
    for more, needed in (("b: *a\n", 7 + 2 + 5), ("b: {<<: *a}\n", 7 + 4 + 5)):
        whole = anchored + more
        assert read(whole, values_limit=needed).problems == ()
        assert [one.rule for one in read(whole, values_limit=needed - 1).problems] == ["too-large"]


def test_merged_mappings_through_lists_of_aliases_are_counted_each() -> None:
    keys = "".join(f"  k{number}: 1\n" for number in range(1000))
    lists = "s: &s [" + ", ".join(["*a"] * 20) + "]\n"
    merges = "".join(f"m{number}: {{<<: *s}}\n" for number in range(40))
    (one,) = read(f"a: &a\n{keys}{lists}{merges}").problems
    assert one.rule == "too-large"


def test_a_bomb_leaves_values_for_other_documents() -> None:
    bomb = "a: &a [" + "x, " * 1000 + "]\nb: &b [" + "*a, " * 50 + "]\nc: [" + "*b, " * 40 + "]\n"
    reading = read(f"{bomb}---\nd: 1\n")
    assert [one.rule for one in reading.problems] == ["too-large"]
    assert [list(one.entries) for one in reading.documents] == [["d"]]


def test_a_text_and_its_parts_are_limited_in_bytes() -> None:
    large = "# " + "x" * documents.DOCUMENT_LIMIT
    reading = read(f"a: 1\n---\n{large}\nb: 2\n---\nc: 3\n")
    assert [list(one.entries) for one in reading.documents] == [["a"], ["c"]]
    assert [(one.rule, one.position) for one in reading.problems] == [("too-large", Position(2, 1))]
    assert problem("é" * (documents.BYTES_LIMIT // 2 + 1)) == ("too-large", Position(1, 1))
    assert problem("x" * (documents.BYTES_LIMIT + 1)) == ("too-large", Position(1, 1))


def test_documents_are_limited_in_number() -> None:
    limit = documents.DOCUMENTS_LIMIT
    assert read("---\n{}\n" * limit).problems == ()
    assert problem("---\n{}\n" * (limit + 1)) == ("too-large", Position(2 * limit + 1, 1))


def test_values_are_limited_in_number_over_all_documents() -> None:
    lists = "---\n[a, b, c]\n" * 3
    assert read(lists, values_limit=12).problems == ()
    (one,) = read(lists, values_limit=11).problems
    assert (one.rule, one.position) == ("too-large", Position(6, 8))


def test_definitions_of_kinds_are_passed_over() -> None:
    definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: [\n"
    reading = read(f"{definition}---\na: 1\n")
    assert ([list(one.entries) for one in reading.documents], reading.problems) == ([["a"]], ())


@pytest.mark.parametrize(
    "words",
    [
        'note: "of\nkind: CustomResourceDefinition\n"\n',
        "note: 'of\nkind: CustomResourceDefinition'\n",
        "note: {kind: CustomResourceDefinition}\n",
        "notes:\n- kind: CustomResourceDefinition\n",
        "note: |\n  kind: CustomResourceDefinition\n",
    ],
)
def test_an_object_that_only_mentions_a_definition_is_checked(words: str) -> None:
    assert "unknown-key" in {one.rule for one in found(words + WRONG)}


@given(st.text(st.characters(codec=None, categories=None), max_size=200))
def test_any_text_is_read_or_refused(source: str) -> None:
    for one in report(source).findings:
        assert one.rule.name in {"yaml-syntax", "duplicate-key", "unknown-rule"}
        assert one.position.line >= 1


PIECES = st.sampled_from(
    [
        *OBJECT.splitlines(keepends=True),
        *text("half-client-certificate", "fail").splitlines(keepends=True),
        "---\n",
        "...\n",
        "  - *a\n",
        "    - &a {x: &b [*a]}\n",
        "kind: List\nitems:\n",
        "  fallback:\n",
        "  idleReplicaCount: 0\n",
        "kind: ScaledJob\n",
        "\t\n",
        "<<: *a\n",
        "metadata: null\n",
        "spec: []\n",
        "triggers: {}\n",
        "? |\n",
        "# keda-gpu-scaler: ignore x, wrong-type\n",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_pieces_of_objects_are_read_or_refused(source: str) -> None:
    for one in report(source).findings:
        assert one.why
        assert one.fix.endswith((".", "?"))
        assert one.why.isprintable()
