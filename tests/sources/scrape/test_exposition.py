"""The text of exporters: which lines are read, and what makes it unusable."""

import contextlib
import itertools
import math
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as ParsedSample

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.simulator import changes, cluster
from keda_gpu_scaler.simulator import exposition as simulated
from keda_gpu_scaler.sources.scrape.exposition import (
    CURRENT_SECONDS,
    LONGEST_LINE_BYTES,
    MOST_PARSED_BYTES,
    MOST_SAMPLES,
    SHORT_LINE_BYTES,
    Page,
    Samples,
    Seen,
)
from tests.support import gpu_samples
from tests.support.gpu_samples import Sample

UTIL = "DCGM_FI_DEV_GPU_UTIL"
NOW = 1_700_000_000.0
PAGE = f"""\
# HELP {UTIL} GPU utilization (in %).
# TYPE {UTIL} gauge
{UTIL}{{gpu="0",UUID="GPU-a",namespace="ml",pod="bert-0"}} 87
{UTIL}{{gpu="1",UUID="GPU-b",namespace="",pod=""}} 0
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{gpu="0",UUID="GPU-a",namespace="ml",pod="bert-0"}} 1980
"""


def read(text: str | bytes, *ends: int) -> list[Sample]:
    """Read a text that arrives in parts, which end there."""
    return gpu_samples.shown(read_after(Seen(), text, *ends)[0])


def read_after(seen: Seen, text: str | bytes, *ends: int) -> tuple[Samples, Seen]:
    """Read a text whose exporter has shown something before; return what it shows now as well."""
    whole = text if isinstance(text, bytes) else text.encode()
    page, cuts = Page(seen, NOW), sorted({0, len(whole), *(end % (len(whole) + 1) for end in ends)})
    for begin, end in itertools.pairwise(cuts):
        page.take(whole[begin:end])
    return page.samples(), page.seen


def test_the_samples_of_known_metrics_are_read() -> None:
    labels = {"__name__": UTIL, "gpu": "0", "UUID": "GPU-a", "namespace": "ml", "pod": "bert-0"}
    idle = {"__name__": UTIL, "gpu": "1", "UUID": "GPU-b", "namespace": "", "pod": ""}

    assert read(PAGE) == [(labels, 87.0), (idle, 0.0)]


@pytest.mark.parametrize("kind", ["gauge", "counter", "untyped", "summary", "histogram", "words"])
def test_a_metric_keeps_its_name_whatever_type_it_claims(kind: str) -> None:
    text = f"# TYPE {UTIL} {kind}\n{UTIL} 1\n{UTIL}_sum 2\n"

    assert read(text) == [({"__name__": UTIL}, 1.0)]


def test_every_metric_of_the_profiles_is_known() -> None:
    text = "".join(f"{name} 1\n" for name in profiles.KNOWN_METRICS)
    found = [labels["__name__"] for labels, _ in read(text)]
    assert sorted(found) == sorted(profiles.KNOWN_METRICS)


def test_what_tells_a_busy_gpu_is_known() -> None:
    assert set(profiles.UTILIZATION_METRICS) <= profiles.KNOWN_METRICS


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("9223372036854775794", 9223372036854775794.0),
        ("1.5e+01", 15.0),
        ("-0", 0.0),
        ("5 1700000000000", 5.0),
        ("5 1699999940000", 5.0),
        ("5 1700000060000", 5.0),
    ],
)
def test_every_number_of_the_format_is_read_as_a_float(spelled: str, value: float) -> None:
    ((_, found),) = read(f"{UTIL} {spelled}\n")

    assert isinstance(found, float)
    assert found == value


@pytest.mark.parametrize(
    "spelled",
    [
        *("NaN", "+Inf", "-Inf", "1e400", "5 NaN", "5 +Inf", "5 1e400"),
        *("5 1699999939999", "5 1700000060001", "5 0", "5 -1"),
    ],
)
def test_a_sample_without_a_finite_value_of_now_is_shown_without_a_number(spelled: str) -> None:
    ((labels, found),) = read(f"{UTIL} {spelled}\n")

    assert labels == {"__name__": UTIL}
    assert math.isnan(found)


def test_a_label_may_hold_anything() -> None:
    text = f'{UTIL}{{pod="a\\"b\\\\c\\nd, }}é"}} 1\n'

    assert read(text) == [({"__name__": UTIL, "pod": 'a"b\\c\nd, }é'}, 1.0)]


def test_a_page_without_gpus_is_a_good_page() -> None:
    assert read("# nothing here\n") == []


def test_a_page_ends_as_open_metrics_does_with_exemplars_before() -> None:
    text = f'{UTIL}{{pod="a"}} 5 # {{trace_id="x"}} 0.5\nfoo_total 1 # {{id="y"}} 1\n# EOF\n'

    same(read(text), [({"__name__": UTIL, "pod": "a"}, math.nan)])


@given(st.integers(min_value=1, max_value=len(PAGE) - 1))
def test_a_page_cut_anywhere_in_a_line_is_refused_whole(end: int) -> None:
    assume(not PAGE[:end].endswith("\n"))
    with pytest.raises(errors.SourceMalformedError, match="the text is cut"):
        read(PAGE[:end])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("<html><body>login</body></html>\n", id="html"),
        pytest.param('{"status":"success"}\n', id="json"),
        pytest.param(f"{UTIL}\n", id="no value"),
        pytest.param(f"{UTIL}{{pod=bert}} 1\n", id="no quotes"),
        pytest.param(f'{UTIL}{{pod="bert" 1\n', id="no end of the labels"),
        pytest.param(f"{UTIL} many\n", id="a value in words"),
        pytest.param(f"{UTIL} {'9' * 400}\n", id="a number beyond a float"),
        pytest.param(b"\xff\xfe\n", id="not UTF-8"),
        pytest.param(f"{UTIL} 1\nOut of memory\n", id="words after a sample"),
        pytest.param(f"{UTIL} 1\nfoo{{a=1}} 1\n", id="another metric's labels without quotes"),
    ],
)
def test_what_is_no_exposition_text_is_refused_whole(text: str | bytes) -> None:
    with pytest.raises(errors.SourceMalformedError):
        read(text)


@given(st.binary(max_size=80) | st.text('{}",= \\\n#DCGM_1', max_size=80).map(str.encode))
def test_any_text_is_samples_or_a_source_error(text: bytes) -> None:
    try:
        found = read(text + b"\n")
    except errors.SourceError as error:
        assert str(error)  # noqa: PT017 - either is right
    else:
        assert all(isinstance(value, float) for _, value in found)


def test_the_simulators_page_is_read() -> None:
    world = cluster.Cluster()
    wanted = changes.checked(cluster.Wanted(), load=120, replicas=2)
    world.put(cluster.Key("ml", "bert"), wanted, 0)
    found = read(simulated.whole_page(world, simulated.Style(), 60))

    busy = [value for labels, value in found if labels["__name__"] == UTIL and labels.get("pod")]
    assert busy == [60.0, 60.0]


# Lines that are skipped

blanks = st.text(" \t", max_size=2)
names = st.sampled_from([*sorted(profiles.KNOWN_METRICS), f"{UTIL}_old", f"my_{UTIL}", "up", "a:b"])
texts = st.text('ab"\\\n{}=,# é', max_size=6).map(
    lambda text: text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
)
numbers = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["NaN", "+Inf", "-inf", ".5", "5.", "1E3", "1_0", "0x1p3"]),
)


@st.composite
def samples(draw: st.DrawFn) -> str:
    """Return a line in any of the ways in which the format writes a sample."""
    name, pad = draw(names), draw(blanks)
    labels = [
        f'{draw(blanks)}{label}{draw(blanks)}={draw(blanks)}"{draw(texts)}"{draw(blanks)}'
        for label in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
    ]
    quoted = draw(st.integers(0, 4)) == 0
    within = ",".join([f'"{name}"', *labels] if quoted else labels) + draw(
        st.sampled_from(["", ","])
    )
    braces = f"{{{within}}}" if quoted or draw(st.booleans()) else ""
    time = draw(st.sampled_from(["", " 1700000000000", "\t-5", ' # {t="x"} 1']))
    gap = draw(st.sampled_from([" ", "\t", "  "]))
    return f"{'' if quoted else name}{pad if braces else ''}{braces}{gap}{draw(numbers)}{time}"


lines = st.one_of(
    samples(),
    samples(),
    st.builds("# TYPE {} gauge".format, names),
    st.builds("#  HELP {} {}".format, names, texts),
    st.sampled_from(["", "# EOF", "#", f"# {UTIL} 1", f'#{UTIL}{{a="b"}} 1']),
)
whole_pages = st.lists(
    st.tuples(blanks, lines, st.sampled_from(["", " ", "\r", "\x0c"])).map("".join), max_size=8
).map(lambda found: "".join(f"{line}\n" for line in [*found, "# EOF"]))


def all_parsed(text: str) -> list[Sample]:
    """Return what prometheus-client's parser reads when it gets every line."""

    def number(sample: ParsedSample) -> float:
        at = NOW if sample.timestamp is None else float(sample.timestamp)
        is_one = math.isfinite(sample.value) and abs(at - NOW) <= CURRENT_SECONDS
        return float(sample.value) if is_one else math.nan

    return [
        ({**sample.labels, "__name__": family.name}, number(sample))
        for family in text_string_to_metric_families(text)
        if family.name in profiles.KNOWN_METRICS
        for sample in family.samples
    ]


@given(whole_pages, st.lists(st.integers(0, 1000), max_size=4))
def test_skipping_lines_changes_nothing_of_what_is_read(text: str, ends: list[int]) -> None:
    try:
        expected = all_parsed(text)
    except (ValueError, KeyError, IndexError, OverflowError):
        assume(condition=False)
    same(read(text, *ends), expected)


def same(found: list[Sample], expected: list[Sample]) -> None:
    """Compare samples, of which some have no number."""
    assert [labels for labels, _ in found] == [labels for labels, _ in expected]
    for (_, one), (_, other) in zip(found, expected, strict=True):
        assert one == other or (math.isnan(one) and math.isnan(other))


@given(
    st.text('{}",= \\\n#D_1', max_size=80).map(str.encode) | st.binary(max_size=80),
    st.lists(st.integers(0, 80), max_size=8),
)
def test_it_does_not_matter_where_a_text_is_parted(text: bytes, ends: list[int]) -> None:
    text = f"{UTIL} 1\n".encode() + text

    def outcome(*ends: int) -> object:
        try:
            return read(text, *ends)
        except errors.SourceError as error:
            return str(error)

    assert outcome(*ends) == outcome()


def test_a_line_of_another_metric_never_gets_to_the_parser() -> None:
    twice = 'a="1",a="2"'  # which the parser refuses

    assert read(f"foo{{{twice}}} 1\n{UTIL} 1\n") == [({"__name__": UTIL}, 1.0)]
    with pytest.raises(errors.SourceMalformedError):
        read(f"{UTIL}{{{twice}}} 1\n")


# Pages after others

BRACES = [
    *(
        "",
        "{}",
        '{pod="a"}',
        '{pod="a",}',
        '{ pod="a"}',
        '{pod = "a" }',
        '{pod="b",pod="b"}',
        "{a}",
    ),
    *('{pod="a } 1"}', '{pod="a\\"} 1"}', '{pod="\\\\"}', '{pod="a\\nb"}', '{pod="# {x} "}'),
    *('{pod="é"}', '{pod="a",UUID="GPU-a"}', '{UUID="GPU-a",pod="a"}', '{pod="a', '{pod="a"} 1'),
]
NUMBERS = [
    *("1", "2.5", "007", "5.", ".5", "-3", "-0", "-0.0", "+1", "1e5", "1.5E+02", "1e400", "1e-9"),
    *("9" * 21, "9" * 400, "NaN", "nan", "+Inf", "-inf", "infinity", "1_0", "0x10", "0x1p3", "-"),
    *("5 1700000000000", "5 NaN", "5\t6", '5 # {t="x"} 1', "5 # {} 2", '5 # {t="a b"} 3 1.5', ""),
]
begins = st.builds(
    "{}{}".format,
    st.sampled_from([UTIL, UTIL, "DCGM_FI_DEV_FB_USED", "foo", f"my_{UTIL}", f"{UTIL}_old", "é"]),
    st.sampled_from(BRACES),
)
ends_of_lines = st.builds(
    "{}{}{}".format,
    st.sampled_from([" ", " ", " ", " ", "  ", "\t", ""]),
    st.sampled_from(NUMBERS) | numbers,
    st.sampled_from(["", "", "", " ", "\r", "\x0c"]),
)
Line = tuple[str, str]
"""Its begin, and its end from the space before the number on."""
own_lines = st.tuples(begins, ends_of_lines)
any_lines = own_lines | st.tuples(lines, st.just(""))


@st.composite
def pages_in_sequence(draw: st.DrawFn) -> list[str]:
    """Return pages of one exporter, each of which differs from the one before in a few places."""
    shown: list[Line] = draw(st.lists(any_lines, max_size=6))
    # With a long line the short ones are looked at one by one.
    long_line = draw(st.sampled_from(["", f"# {'x' * 64 * SHORT_LINE_BYTES}\n"]))
    pages = []
    for _ in range(draw(st.integers(2, 4))):
        pages.append(long_line + "".join(f"{begin}{end}\n" for begin, end in shown) + "\n")
        for _change in range(draw(st.integers(0, 2))):
            place = draw(st.integers(0, len(shown)))
            before, after = shown[:place], shown[place:]
            kind = draw(st.sampled_from(["number", "number", "line", "more", "less", "twice"]))
            if kind == "number" and after:
                after = [(after[0][0], draw(ends_of_lines)), *after[1:]]
            elif kind in {"line", "less"}:
                after = after[1:]
            elif kind == "twice":
                after = [*after[:1], *after]
            added = [draw(any_lines)] if kind in {"line", "more"} else []
            shown = [*before, *added, *after]
    return pages


@given(pages_in_sequence(), st.lists(st.integers(0, 1000), max_size=3))
def test_what_was_seen_before_changes_nothing_of_what_is_read(
    pages: list[str], ends: list[int]
) -> None:
    seen = Seen()
    for text in pages:
        try:
            expected = read(text)
        except errors.SourceMalformedError as error:
            with pytest.raises(errors.SourceMalformedError, match=str(error)):
                read_after(seen, text, *ends)
            continue
        samples, seen = read_after(seen, text, *ends)
        found = gpu_samples.shown(samples)

        assert repr(sorted(found, key=repr)) == repr(sorted(expected, key=repr))
        assert [labels for labels, _ in found] == [labels for labels, _ in expected]
        assert samples.series == seen.series
        with contextlib.suppress(ValueError, KeyError, IndexError, OverflowError):
            same(found, all_parsed(text))


def test_a_line_with_another_number_is_known_from_the_page_before() -> None:
    first, seen = read_after(Seen(), PAGE)
    second, _ = read_after(seen, PAGE.replace(" 87\n", " 88.5\n").replace(" 1980\n", " 1990\n"))

    assert list(second.values) == [88.5, 0.0]
    assert second.series is first.series


def test_a_page_with_other_series_keeps_those_that_stay() -> None:
    first, seen = read_after(Seen(), PAGE)
    more, seen = read_after(seen, PAGE + f'{UTIL}{{pod="new"}} 3\n')
    less, seen = read_after(seen, f'{UTIL}{{pod="new"}} 4\n')

    assert [one is other for one, other in zip(first.series, more.series, strict=False)] == [
        True
    ] * 2
    assert less.series[0] is more.series[2]
    assert list(seen.labels) == [b'{pod="new"}']
    assert list(less.values) == [4.0]


@pytest.mark.parametrize("exemplar", ['# {t="x"} {}', '1700000000000 # {t="x"} {}', "{}"])
def test_no_number_of_an_exemplar_or_a_time_is_taken_for_the_value(exemplar: str) -> None:
    seen = Seen()
    for number in ("1", "2", "3"):
        end = exemplar.replace("{}", number)
        samples, seen = read_after(seen, f'{UTIL}{{pod="a"}} 5 {end}\n')
        same(gpu_samples.shown(samples), [({"__name__": UTIL, "pod": "a"}, math.nan)])


def test_a_line_of_another_metric_with_known_braces_is_read_like_any_other() -> None:
    _, seen = read_after(Seen(), PAGE)
    braces = '{gpu="0",UUID="GPU-a",namespace="ml",pod="bert-0"}'
    long_line = f"# {'x' * 64 * SHORT_LINE_BYTES}\n"
    for before in (PAGE, long_line + PAGE):
        for line in (f"foo{braces} many", f"foo{braces} 1_0", f"{UTIL}{braces} 1 x"):
            with pytest.raises(errors.SourceMalformedError, match="not Prometheus"):
                read_after(seen, f"{before}{line}\n")
        found, _ = read_after(seen, f"{before}foo{braces} 1\n")
        assert list(found.values) == [87.0, 0.0]
        found, _ = read_after(seen, f"{before}DCGM_FI_DEV_FB_USED{braces} 1\n")
        assert list(found.values) == [87.0, 0.0, 1.0]


# Bounds


def test_of_a_large_text_about_other_things_nothing_is_kept() -> None:
    page, part = Page(), b'foo{cpu="0",mode="idle"} 123.4 1700000000000\n\na 1\r\n# x\n' * 300
    page.take(f"{UTIL} 1\n".encode())
    tracemalloc.start()
    for _ in range(16 * 2**20 // len(part)):
        page.take(part)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert gpu_samples.shown(page.samples()) == [({"__name__": UTIL}, 1.0)]
    assert peak < 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("x" * (LONGEST_LINE_BYTES + 1), "a line of more than", id="a line"),
        pytest.param(f"{UTIL} 1\n" * (MOST_SAMPLES + 1), "samples of GPU metrics", id="samples"),
        pytest.param(
            f'{{"foo",a="{"x" * 60_000}"}} 1\n' * (MOST_PARSED_BYTES // 60_000 + 1),
            "bytes of lines",
            id="lines that have to be parsed",
        ),
    ],
)
def test_what_is_too_much_is_refused_with_its_bound(text: str, words: str) -> None:
    with pytest.raises(errors.SourceMalformedError, match=words):
        read(text, *range(0, len(text), 2**14))


def test_as_many_samples_as_allowed_are_read() -> None:
    text = "".join(f'{UTIL}{{gpu="{number}"}} 1\n' for number in range(MOST_SAMPLES))

    assert len(read(text)) == MOST_SAMPLES
