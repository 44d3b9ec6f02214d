"""A number at the edge of what is possible, wherever PromQL has one: read exactly or refused."""

import promql_parser
import pytest

from keda_gpu_scaler import promql
from keda_gpu_scaler.promql import Policy, parsing, tree
from keda_gpu_scaler.promql.lexer import tokens

EDGES = [
    *("0", "0.0", "1", "0.5", ".5", "5.", "1e-9", "0.0001", "1e-400", "1e3", "017", "089", "0e5"),
    *("4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *("253402300799", "253402300799.9999", "253402300800", "1e308", "1e309", "1e400", "9" * 400),
    *("NaN", "nan", "Inf", "inf", "0x1F", "0xFFFFFFFFFFFFFFFFFF", "1_000", "1e", "1e+", "1.2.3"),
    *("5m", "1h30m", "1ms", "0s", "0ms", "100y", "101y", "4294967296s", "1m4294967296s", "5m1h"),
    *("9" * 400 + "s", "1.5m", "5z", "5M"),
]
# Each # stands for a number.
PLACES = [
    *("rate(m[#])", "max_over_time(m[#:1m])", "max_over_time(m[1m:#])", "max_over_time(m[#:])"),
    *("m offset #", "rate(m[5m] offset #)", "max_over_time(m[5m:1m] offset #)", "m @ #"),
    *("rate(m[5m] @ #)", "max_over_time(m[5m:1m] @ # offset #)", "m * #", "# ^ #", "m > #"),
    *("topk(#, m)", "quantile(#, m)", "limit_ratio(#, m)", "clamp(m, #, #)", "vector(#)"),
    *("m + fill (#) m", "m + fill_left (#) m", "m + fill_left (#) fill_right (#) m"),
    *("histogram_quantile(#, m)", "m{a='#'} offset #"),
]


def sent(text: str) -> str | None:
    """Return what is sent; None: the text is refused."""
    try:
        return promql.number(text, Policy.NAMESPACED, "ml")
    except ValueError:
        return None


@pytest.mark.parametrize("place", PLACES)
def test_every_number_is_read_exactly_or_the_tenants_mistake(
    place: str, subtests: pytest.Subtests, capfd: pytest.CaptureFixture[str]
) -> None:
    for edge in EDGES:
        for sign in ("", "-", "+"):
            with subtests.test(number=sign + edge):
                found = sent(place.replace("#", sign + edge))
                if found is not None:
                    assert promql.number(found, Policy.ALLOW, "ml") == found
                    assert "[0" not in found
    assert capfd.readouterr().err == ""  # where a panic would show


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1ms", 0.001),
        ("0.25", 0.25),
        ("1e3", 1000),
        ("1y2w3d4h5m6s7ms", 31_536_000 + 14 * 86_400 + 3 * 86_400 + 4 * 3600 + 306.007),
        ("90", 90),
        ("100y", 3_153_600_000),
    ],
)
def test_a_duration_is_the_same_in_every_place(text: str, seconds: float) -> None:
    read = parsing.tree_of(tokens(f"rate(m[{text}] offset {text})"))
    assert isinstance(read, tree.Call)
    (found,) = read.arguments
    assert isinstance(found, tree.Range)
    assert found.seconds == found.selector.shift.offset == seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "rate(m[0.0001])",
            "column 8: a duration has to be whole milliseconds, at most 100y, such",
        ),
        ("rate(m[1.0005])", "column 8: a duration has to be whole milliseconds"),
        ("rate(m[010])", "column 8: a duration has to be whole milliseconds"),
        ("m OFFSET - Inf", "column 12: a duration has to be whole milliseconds"),
        ("m offset 1m4294967296s", "column 10: a duration has to be whole milliseconds"),
        ("m @ -1", "column 6: a time has to be in seconds since 1970, and before the year 10000"),
        ("m @ + 253402300800", "column 7: a time has to be in seconds since 1970"),
        ("m > -1e309", "column 6: a number has to be below 1.8e308"),
    ],
)
def test_a_number_that_does_not_fit_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match="line 1, ") as caught:
        promql.number(text, Policy.ALLOW, "ml")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("vector(Inf)", "vector(Inf)"),
        ("vector(-Inf)", "vector(-Inf)"),
        ("vector(NaN)", "vector(NaN)"),
        ("vector(1e-9)", "vector(1e-09)"),
        ("vector(0x1F)", "vector(31.0)"),
        ("vector(-0)", "vector(-0.0)"),
        ("vector(1m)", "vector(60.0)"),
    ],
)
def test_what_is_no_duration_may_be_any_number(text: str, sent: str) -> None:
    assert promql.number(text, Policy.NAMESPACED, "ml") == sent


def test_a_panic_of_the_parser_is_a_mistake_in_the_text(capfd: pytest.CaptureFixture[str]) -> None:
    unjudged = "rate(m[1e400])"
    with pytest.raises(BaseException, match="cannot convert float seconds") as caught:
        promql_parser.parse(unjudged)
    assert not isinstance(caught.value, Exception)
    with pytest.raises(ValueError, match="a text that the parser cannot read"):
        parsing.tree_of(tokens(unjudged))
    assert "panicked" in capfd.readouterr().err
