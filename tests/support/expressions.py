"""Random PromQL of every form, as users could write it.

Where a selector's matchers end stands a mark, so that a test can write there by hand what the
product has to write there by itself.
"""

from hypothesis import strategies as st

PLAIN = "\N{SECTION SIGN}"
"""Behind the matchers of a selector that names no label of a workload's namespace."""
EXPORTED = "\N{PILCROW SIGN}"
"""Behind those of one that has a matcher on exported_namespace."""

_NAMES = st.sampled_from(["load", "power", "sum", "time", "by"])
_LABELS = ["pod", "gpu", "namespace", "exported_namespace"]
_GROUPING = st.lists(st.sampled_from(_LABELS), max_size=3, unique=True).map(", ".join)
_MATCHERS = st.sampled_from(
    [
        "",
        'gpu="0"',
        'gpu!="1"',
        'pod=~"a.*"',
        'pod!~"b.+"',
        'namespace="other"',
        'namespace!="ml"',
        'namespace=~".*"',
        "gpu=~'[01]'",
        'pod!="\\"\\\\\\n"',
        "pod!=`x\"} or y{pod='`",
        "pod!='#\" # '",
        'pod!="\\x41\\101\\u00e9"',
    ]
)
_EXPORTED_MATCHERS = st.sampled_from(
    [
        'exported_namespace=~".+"',
        'exported_namespace!=""',
        'exported_namespace="other"',
        'exported_namespace="ml", gpu="0"',
        'exported_namespace!="other"',
    ]
)
_DURATIONS = st.sampled_from(["30s", "1m", "1m30s", "90s", "120000ms"])
_NUMBERS = st.sampled_from(["0", "1", "2.5", "0x1F", "1e3", "Inf", "NaN", "-3", "time()"])
_SHIFTS = st.sampled_from(["", "", "", " offset 30s", " offset -30s", " @ end()", " @ start()"])
_Nested = st.SearchStrategy[str]


@st.composite
def selectors(draw: st.DrawFn) -> str:
    """Return a vector selector without `offset` and `@`."""
    given = draw(st.one_of(_MATCHERS, _EXPORTED_MATCHERS))
    mark = EXPORTED if "exported_namespace" in given else PLAIN
    name = draw(_NAMES)
    form = draw(st.integers(0, 3))
    if form == 0:
        return f'{{__name__="{name}"{f", {given}" if given else ""}{mark}}}'
    if form == 1:
        return f'{{__name__=~"load|power", gpu=~".*"{f", {given}" if given else ""}{mark}}}'
    # A keyword is a metric's name only where nothing can follow it that makes it one again.
    return f"{name if name in ('load', 'power') else 'load'}{{{given}{mark}}}"


@st.composite
def _shifted(draw: st.DrawFn) -> str:
    return draw(selectors()) + draw(_SHIFTS)


@st.composite
def _ranges(draw: st.DrawFn, nested: _Nested) -> str:
    if draw(st.booleans()):
        return f"{draw(selectors())}[{draw(_DURATIONS)}]{draw(_SHIFTS)}"
    inner = draw(nested)
    # Steps multiply, and the default is many steps: only the innermost may use it.
    step = draw(st.sampled_from(["30s", "1m"] if ":" in inner else ["", "30s", "1m"]))
    return f"({inner})[{draw(_DURATIONS)}:{step}]{draw(_SHIFTS)}"


@st.composite
def _over_time(draw: st.DrawFn, nested: _Nested) -> str:
    names = ["rate", "avg_over_time", "max_over_time", "count_over_time", "present_over_time"]
    name = draw(st.sampled_from([*names, "last_over_time", "absent_over_time", "changes"]))
    return f"{name}({draw(_ranges(nested))})"


@st.composite
def _called(draw: st.DrawFn, nested: _Nested) -> str:
    inner = draw(nested)
    return draw(
        st.sampled_from(
            [
                f"abs({inner})",
                f"clamp_max({inner}, 50)",
                f"timestamp({inner})",
                f"absent({inner})",
                f"sort({inner})",
                f"vector(scalar({inner}))",
                f'label_replace({inner}, "namespace", "other", "", "")',
                f'label_replace({inner}, "pod", "$1-x", "pod", "(.*)")',
                f'label_join({inner}, "exported_namespace", "-", "gpu", "pod")',
            ]
        )
    )


@st.composite
def _aggregated(draw: st.DrawFn, nested: _Nested) -> str:
    name = draw(st.sampled_from(["sum", "avg", "max", "min", "count", "group", "stddev"]))
    param = ""
    if draw(st.booleans()):
        name, param = draw(
            st.sampled_from(
                [
                    ("topk", "2, "),
                    ("bottomk", "1, "),
                    ("quantile", "0.5, "),
                    ("count_values", '"value", '),
                ]
            )
        )
    word = draw(st.sampled_from(["", "by", "without"]))
    grouping = f"{word} ({draw(_GROUPING)}) " if word else ""
    inner = draw(nested)
    if draw(st.booleans()):
        return f"{name}({param}{inner}) {grouping}"
    return f"{name} {grouping}({param}{inner})"


@st.composite
def _combined(draw: st.DrawFn, nested: _Nested) -> str:
    left, right = draw(nested), draw(st.one_of(nested, _NUMBERS))
    is_vector = PLAIN in right or EXPORTED in right
    operator = draw(st.sampled_from(["+", "-", "*", "/", "^", "%", "atan2", "> bool", "<="]))
    matching = draw(st.sampled_from(["", "on (pod, gpu) ", "ignoring (gpu) ", "on () "]))
    if not is_vector:
        # Without the parentheses, an operator that follows could bind to the number alone.
        return f"({left} {operator} {right})"
    if draw(st.booleans()):
        operator = draw(st.sampled_from(["and", "or", "unless"]))
    elif matching:
        groups = ["", "group_left () ", "group_left (exported_namespace) ", "group_right () "]
        matching += draw(st.sampled_from(groups))
    return f"{left} {operator} {matching}{right}"


vectors: st.SearchStrategy[str] = st.recursive(
    _shifted(),
    lambda nested: st.one_of(
        _over_time(nested),
        _called(nested),
        _aggregated(nested),
        _combined(nested),
        nested.map("({})".format),
        nested.map("-({})".format),
    ),
    max_leaves=6,
)
"""Expressions for an instant vector, with marks."""


def by_hand(text: str, plain: str, exported: str) -> str:
    """Return an expression with these matchers in place of the marks, or with none."""
    for mark, more in ((PLAIN, plain), (EXPORTED, exported)):
        text = text.replace(f"{{{mark}", f"{{{more}").replace(mark, f",{more}" if more else "")
    return text
