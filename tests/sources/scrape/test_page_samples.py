"""The text of exporters: which lines are read, and what makes it unusable."""

import math
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as ParsedSample

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.sources.scrape.page_samples import (
    CURRENT_SECONDS,
    LONGEST_LINE_BYTES,
    MOST_LINES,
    parse,
)
from tests.support import gpu_samples
from tests.support.computing import MOST_SECONDS, cpu_seconds
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


def read(text: str | bytes) -> list[Sample]:
    return gpu_samples.shown(parse(text if isinstance(text, bytes) else text.encode(), NOW))


def test_the_samples_of_known_metrics_are_read() -> None:
    labels = {"__name__": UTIL, "gpu": "0", "UUID": "GPU-a", "namespace": "ml", "pod": "bert-0"}
    idle = {"__name__": UTIL, "gpu": "1", "UUID": "GPU-b", "namespace": "", "pod": ""}

    assert read(PAGE) == [(labels, 87.0), (idle, 0.0)]


@pytest.mark.parametrize("kind", ["gauge", "counter", "histogram"])
def test_a_metric_keeps_its_name_whatever_type_it_claims(kind: str) -> None:
    text = f"# TYPE {UTIL} {kind}\n{UTIL} 1\n{UTIL}_sum 2\n"

    assert read(text) == [({"__name__": UTIL}, 1.0)]


NUMBERS = {
    "9223372036854775794": 9223372036854775794.0,
    "1.5e+01": 15.0,
    "-0": 0.0,
    "5 1700000000000": 5.0,
    "5 1699999940000": 5.0,
    "5 1700000060000": 5.0,
}
NO_NUMBERS = [
    *("NaN", "+Inf", "-Inf", "1e400", "5 NaN", "5 +Inf", "5 1e400"),
    *("5 1699999939999", "5 1700000060001", "5 0", "5 -1", "5 1"),
    *('5 # {t="x"} 1', '5 1700000000000 # {t="x"} 1'),
]


@pytest.mark.parametrize(
    ("spelled", "value"), [*NUMBERS.items(), *((spelled, math.nan) for spelled in NO_NUMBERS)]
)
def test_a_sample_has_a_number_if_it_is_finite_and_of_now(spelled: str, value: float) -> None:
    """Neither the number of an exemplar nor a time is taken for the value."""
    read_samples = read(f'{UTIL}{{pod="a"}} {spelled}\n')
    same(read_samples, [({"__name__": UTIL, "pod": "a"}, value)])
    assert isinstance(read_samples[0][1], float)


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
    ],
)
def test_what_is_no_exposition_text_is_refused_whole(text: str | bytes) -> None:
    with pytest.raises(errors.SourceMalformedError):
        read(text)


# Lines that are skipped

NAMES = [UTIL, "gpu_gfx_activity", f"{UTIL}_old", f"my_{UTIL}", "up", "a:b"]
LINES = [
    "{} 87",
    '{}{{pod="a"}} 5 1700000000000',
    ' {} {{ pod = "}} 1", UUID="a\\"b\\\\" , }}\t.5',
    "{}{{}} +Inf -5",
    '{}{{pod="é"}} 1E3 # {{t="x"}} 1',
    '{{"{}",pod="a"}} 1',
    "# TYPE {} gauge",
    '#{}{{a="b"}} 1',
]


@pytest.mark.parametrize("line", LINES)
def test_skipping_lines_changes_nothing_of_what_is_read(line: str) -> None:
    for end in ("\n", " \n", "\r\n"):
        page = "".join(line.format(name) + end for name in NAMES)
        same(read(page), all_parsed(page))


def all_parsed(text: str) -> list[Sample]:
    """Return what prometheus-client's parser reads when it gets every line."""

    def number(sample: ParsedSample) -> float:
        at = NOW if sample.timestamp is None else float(sample.timestamp)
        is_one = math.isfinite(sample.value) and abs(at - NOW) <= CURRENT_SECONDS
        return float(sample.value) if is_one else math.nan

    return [
        (
            {label: text for label, text in sample.labels.items() if label in profiles.KNOWN_LABELS}
            | {"__name__": family.name},
            number(sample),
        )
        for family in text_string_to_metric_families(text)
        if family.name in profiles.KNOWN_METRICS
        for sample in family.samples
    ]


def same(found: list[Sample], expected: list[Sample]) -> None:
    """Compare samples, of which some have no number."""
    assert [labels for labels, _ in found] == [labels for labels, _ in expected]
    for (_, one), (_, other) in zip(found, expected, strict=True):
        assert one == other or (math.isnan(one) and math.isnan(other))


def test_a_line_of_another_metric_never_gets_to_the_parser() -> None:
    twice = 'a="1",a="2"'  # which the parser refuses

    assert read(f"foo{{{twice}}} 1\n{UTIL} 1\n") == [({"__name__": UTIL}, 1.0)]
    with pytest.raises(errors.SourceMalformedError):
        read(f"{UTIL}{{{twice}}} 1\n")


def test_series_that_stay_are_the_objects_of_the_page_before() -> None:
    first = parse(PAGE.encode(), NOW)
    assert parse(PAGE.encode(), NOW, first.series).series is first.series

    more = parse(f'{PAGE}{UTIL}{{pod="new"}} 3\n'.encode(), NOW, first.series)
    assert all(one is other for one, other in zip(first.series, more.series, strict=False))
    assert list(more.values) == [87.0, 0.0, 3.0]


# Bounds


def test_of_a_large_text_about_other_things_nothing_is_kept() -> None:
    part = b'foo{cpu="0",mode="idle"} 123.4 1700000000000\n\na 1\r\n# x\n' * 300
    text = f"{UTIL} 1\n".encode() + part * 300
    tracemalloc.start()
    samples = parse(text, NOW)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert gpu_samples.shown(samples) == [({"__name__": UTIL}, 1.0)]
    assert peak < 2**20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("x" * (LONGEST_LINE_BYTES + 1), "a line of more than", id="a line"),
        pytest.param(f"{UTIL} 1\n" * (MOST_LINES + 1), "lines of GPU metrics", id="samples"),
        pytest.param('{"foo"} 1\n' * (MOST_LINES + 1), "lines of GPU metrics", id="odd lines"),
    ],
)
def test_what_is_too_much_is_refused_with_its_bound(text: str, words: str) -> None:
    with pytest.raises(errors.SourceMalformedError, match=words):
        read(f"{text}\n")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(" " * 200_000 + "?", id="blanks"),
        pytest.param("a" + " " * 200_000 + "?", id="blanks behind a name"),
        pytest.param("a 1 1" + " " * 200_000 + "?", id="blanks behind a sample"),
        pytest.param("a{" + "} 1 1 " * 30_000 + "?", id="samples in a row"),
        pytest.param("a " + "1" * 200_000 + "?", id="digits"),
        pytest.param("a" * 200_000 + "?", id="a name"),
    ],
)
def test_the_time_of_a_line_grows_with_its_length(line: str) -> None:
    def refused() -> None:
        with pytest.raises(errors.SourceMalformedError, match="a line of more than"):
            read(f"{line}\n")

    assert cpu_seconds(refused) < MOST_SECONDS
