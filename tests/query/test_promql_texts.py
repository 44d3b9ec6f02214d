"""PromQL texts: whole, one for all triggers, and no value put into them breaks out."""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import promql_parser
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles.model import Part
from keda_gpu_scaler.query.promql_texts import (
    EXPORTERS,
    LONGEST_BYTES,
    LOOK,
    alternatives,
    namespace_matchers,
    quoted,
    texts_about,
)
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from tests.support.promql_texts import ages_text, reported_gpus_text, snapshot_text

HOSTILE = (
    'ml"',
    'ml"} or up{job=~"',
    "ml\\",
    'ml\\"',
    "ml\n} or up",
    "ml|kube-system",
    ".*",
    "(",
    "[[:alpha:]",
    "\\E.*",
    "a{2,}",
    "$__range",
    "#",
    "`",
    "",
    "é☃\U0001f600",
)
SHOWN = [(name, signal) for name in profiles.NAMES for signal in profiles.signals(name)]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(HOSTILE)
sets = st.frozensets(texts, min_size=1, max_size=5)


def snapshot_query(
    *namespaces: str,
    signal: Signal = Signal.UTILIZATION,
    profile: str = "auto",
    span: float = 300,
) -> SnapshotQuery:
    return SnapshotQuery(signal, profile, frozenset(namespaces or {"ml"}), span, 120)


def selectors(text: str) -> Iterator[Any]:
    """Yield every selector of a query, as another parser than ours sees it."""
    found: list[Any] = []

    def note(expression: object) -> bool:
        if isinstance(expression, promql_parser.VectorSelector):
            found.append(expression)
        return True

    promql_parser.walk(promql_parser.parse(text), note)
    yield from found


def shape(text: str) -> list[tuple[str | None, tuple[tuple[str, str], ...]]]:
    """Return the selectors of a query without the texts that were put into them."""
    return [
        (one.name, tuple((each.name, str(each.op)) for each in one.matchers.matchers))
        for one in selectors(text)
    ]


def matched(text: str) -> str:
    """Return what a literal means to a parser of PromQL."""
    (one,) = selectors(f"x{{label=~{text}}}")
    value: str = one.matchers.matchers[0].value
    return value


def every_query(asked: SnapshotQuery, jobs: Iterable[str]) -> list[str]:
    return [snapshot_text(asked, jobs, 15), ages_text(asked), reported_gpus_text(asked.namespaces)]


# Texts


@given(texts)
def test_a_quoted_text_means_itself(text: str) -> None:
    (one,) = selectors(f"x{{label={quoted(text)}}}")

    assert one.matchers.matchers[0].value == text


@given(sets, texts)
def test_alternatives_match_exactly_their_texts(given_texts: frozenset[str], other: str) -> None:
    regex = matched(alternatives(given_texts))

    assert all(re2.fullmatch(regex, text) for text in given_texts)
    assert bool(re2.fullmatch(regex, other)) == (other in given_texts)


def test_nothing_breaks_out_of_the_query_of_any_exporter() -> None:
    hostile = every_query(snapshot_query(*HOSTILE), HOSTILE)
    harmless = every_query(snapshot_query("ml"), ["dcgm"])

    assert [shape(text) for text in hostile] == [shape(text) for text in harmless]


# Queries


LABELS = st.dictionaries(
    st.sampled_from([*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS]),
    st.sampled_from(["", "ml", "ai", "other", "bert-0"]),
)


def takes(selector: promql_parser.VectorSelector, row: dict[str, str]) -> bool:
    """Tell whether a selector of these texts takes a row, as far as labels that name pods say."""
    signs: dict[str, Callable[[str, str], bool]] = {
        "MatchOp.Equal": str.__eq__,
        "MatchOp.NotEqual": str.__ne__,
        "MatchOp.Re": lambda text, regex: bool(re2.fullmatch(regex, text)),
        "MatchOp.NotRe": lambda text, regex: not re2.fullmatch(regex, text),
    }
    naming = {*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS}
    return all(
        signs[str(one.op)](row.get(one.name, ""), one.value)
        for one in selector.matchers.matchers
        if one.name in naming
    )


@given(st.sampled_from(SHOWN), LABELS)
def test_a_row_is_asked_for_if_and_only_if_it_may_be_about_a_pod_of_the_namespaces(
    shown: tuple[str, Signal], row: dict[str, str]
) -> None:
    """The selectors follow the ranking: a renamed label decides, wherever it is there."""
    profile, signal = shown
    here = alternatives(["ml", "ai"])
    for way in profiles.metric_sources(profile, signal):
        exported, *others = way.labels.namespaces
        known = {label: text for label, text in row.items() if label in way.labels.names}
        texts = [row.get(label) for label in ([exported] if row.get(exported) else others)]
        found = [
            number
            for number, each in enumerate(namespace_matchers(way.labels, here))
            for one in selectors(f"x{{{','.join(each)}}}")
            if takes(one, row)
        ]
        assert bool(found) == ("ml" in texts or "ai" in texts)
        pod = profiles.pod_of(known)
        assert found or pod is None or pod[0] not in {"ml", "ai"}


def test_every_gpu_selector_is_confined_to_the_namespaces() -> None:
    for profile, signal in SHOWN:
        asked = snapshot_query("ml", "ai", signal=signal, profile=profile)
        for text in (snapshot_text(asked, [], 15), ages_text(asked)):
            for one in selectors(text):
                matchers = [(each.name, str(each.op), each.value) for each in one.matchers.matchers]
                assert one.name == "up" or any(
                    label in profiles.NAMESPACE_LABELS and (op, value) == ("MatchOp.Re", "ai|ml")
                    for label, op, value in matchers
                )


def test_every_metric_of_a_profile_is_asked_for(subtests: pytest.Subtests) -> None:
    for profile, signal in SHOWN:
        asked = snapshot_query(signal=signal, profile=profile)
        metric_sources = profiles.metric_sources(profile, signal)
        wanted = [metric for way in metric_sources for metric in way.measure.metrics]
        aging = [each for each in wanted if each.part not in {Part.FREE, Part.TOTAL}]
        texts = ((snapshot_text(asked, [], 15), wanted), (ages_text(asked), aging))
        for text, metrics in texts:
            with subtests.test(f"{profile} {signal}"):
                assert {each.name for each in metrics if each.name not in text} == set()


def test_slices_and_engines_are_told_apart_by_what_the_exporter_calls_them() -> None:
    texts = {
        "amd": '{__name__=~"gpu_gfx_activity|amd_gpu_gfx_activity",namespace=~"ml",'
        'exported_namespace="",gpu_partition_id=~"|0",gpu_compute_partition_type=~"|SPX|spx"}',
        "intel-xpum-v1": 'xpum_engine_ratio{exported_namespace=~"ml",sub_dev=""}',
    }
    for profile, text in texts.items():
        assert text in snapshot_text(snapshot_query(profile=profile), [], 15)
    pod = "exported_namespace, kube_namespace, namespace, exported_pod, kube_pod, pod"
    assert f"by ({pod}, uuid, dev_file, GPU_I_ID, sub_dev, job, instance" in (
        snapshot_text(snapshot_query(profile="intel-xpum-v1"), [], 15)
    )


OF_TASK = [
    '{exported_namespace=~"ml"}',
    '{k8s_namespace_name=~"ml",exported_namespace=""}',
    '{namespace=~"ml",exported_namespace=""}',
]
NAMED = "exported_namespace, k8s_namespace_name, namespace, exported_pod, k8s_pod_name, pod"


def test_the_ages_of_pods_are_told_apart_by_metric_and_the_source_itself_is_marked() -> None:
    by_metric = [
        f"label_replace(max by ({NAMED}) ("
        + " or ".join(f"timestamp({metric}{matchers})" for matchers in OF_TASK)
        + f'), "metric", "{metric}", "", "")'
        for metric in ("hw_power_watts",)
    ]
    assert ages_text(snapshot_query(profile="otel-hw", signal=Signal.POWER)) == (
        f"(time() - max by ({NAMED}) ({' or '.join(by_metric)}) > 60)"
        ' or label_replace(group(up offset 2m), "alive", "1", "", "")'
        ' or label_replace(max(timestamp(up)) >= time() - 60, "on_time", "1", "", "")'
    )


def test_a_second_metric_is_asked_for_where_the_first_is_not_or_is_0_and_is_marked() -> None:
    named = "exported_namespace, namespace, exported_pod, pod"
    gpu = f"{named}, UUID, gpu, GPU_I_ID, job, instance"
    where = ('{exported_namespace=~"ml"', '{namespace=~"ml",exported_namespace=""')
    sampled = " or ".join(f'DCGM_FI_DEV_GPU_UTIL{each},GPU_I_ID=""}}' for each in where)
    average = " or ".join(f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{each}}}" for each in where)
    ratio = snapshot_text(snapshot_query(profile="dcgm"), [], 15)
    first = f"max by ({gpu}, __name__) ({sampled})"
    second = f"max by ({gpu}, __name__) ({average}) unless on ({gpu}) ({first})"
    marked = f'label_replace({second}, "metric", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "", "")'
    assert ratio == f"(({first} or {marked}))[5m:15s]"
    auto = snapshot_text(snapshot_query(), [], 15, found=())
    assert "(DCGM_FI_DEV_GPU_UTIL{" in auto
    assert " unless on (exported_namespace, pod_namespace, namespace," in auto
    assert '{namespace=~"ml",exported_namespace=""}) != 0), "metric",' in auto


def test_exporters_that_differ_in_their_names_alone_share_one_expression() -> None:
    found = {"metax", "iluvatar", "enflame"}
    text = snapshot_text(snapshot_query(), [], 15, found=found)
    assert '{__name__=~"mx_gpu_usage|ix_gpu_utilization",namespace=~"ml"' in text
    assert 'enflame_gcu_usage{pod_namespace=~"ml"' in text
    share = snapshot_text(snapshot_query(signal=Signal.MEMORY), [], 15, found=found)
    assert '{__name__=~"mx_memory_used|mx_memory_total",namespace=~"ml",' in share
    assert share.count(',type="vram"}') == 2
    assert '{__name__=~"ix_mem_used|ix_mem_total",namespace=~"ml",exported_namespace=""}' in share


def test_an_average_is_not_asked_for_beside_a_sample_that_is_0() -> None:
    text = snapshot_text(snapshot_query(profile="dcgm"), [], 15)
    assert " == 0" not in text
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" in text


def test_a_text_about_every_exporter_is_as_long_as_victoria_metrics_takes() -> None:
    for signal in profiles.signals(profiles.AUTO):
        asked = snapshot_query("n" * 63, signal=signal)
        for text in every_query(asked, ["dcgm-exporter"]):
            assert len(text.encode()) < LONGEST_BYTES
    assert len(EXPORTERS.encode()) < LONGEST_BYTES
    assert len(LOOK.encode()) < LONGEST_BYTES


def test_a_zero_is_left_out_only_where_it_means_that_nothing_is_known() -> None:
    power = snapshot_text(snapshot_query(profile="amd", signal=Signal.POWER), [], 15)
    busy = snapshot_text(snapshot_query(profile="amd"), [], 15)
    names = '{__name__=~"gpu_package_power|amd_gpu_package_power"'
    assert f'{names},namespace=~"ml",exported_namespace=""}}) != 0)' in power
    assert busy.count("!= 0") == 1  # that of the first metric, where the second is asked for


def test_exporters_are_looked_for_by_their_metrics_with_pods() -> None:
    found = list(selectors(EXPORTERS))
    asked = {label for one in found for label in one.matchers.matchers}
    names = {name for each in asked if each.name == "__name__" for name in each.value.split("|")}

    assert names == {
        name
        for exporter in profiles.DETECTED
        for name in profiles.metric_names(exporter, Signal.UTILIZATION)
    }
    for one in found:
        present = [
            each.name for each in one.matchers.matchers if str(each.op) == "MatchOp.NotEqual"
        ]
        assert len(present) == 1
    assert all(f'"exporter", "{name}"' in EXPORTERS for name in profiles.DETECTED)


@pytest.mark.parametrize(
    ("span", "step", "expected"),
    [
        (300, 15, "[5m:15s]"),
        (255, 15, "[4m15s:15s]"),
        (90.5, 0.1, "[1m30s500ms:100ms]"),
        (1_036_800, 7.5, "[12d:7s500ms]"),
    ],
)
def test_spans_and_steps_are_durations_that_prometheus_reads(
    span: float, step: float, expected: str
) -> None:
    text = snapshot_text(snapshot_query(span=span), ["dcgm"], step)
    whole: Any = promql_parser.parse(text)

    assert text.endswith(expected)
    assert whole.range == timedelta(seconds=span)
    assert whole.step == timedelta(seconds=step)


def test_health_is_asked_of_known_jobs_only() -> None:
    without = shape(snapshot_text(snapshot_query(), [], 15))
    with_jobs = shape(snapshot_text(snapshot_query(), ["b", "a"], 15))

    assert with_jobs[: len(without)] == without
    assert with_jobs[len(without) :] == [("up", (("job", "MatchOp.Re"),))] * 2
    assert 'up{job=~"a|b"}' in snapshot_text(snapshot_query(), ["b", "a"], 15)


def test_a_query_is_the_same_text_for_the_same_demand() -> None:
    namespaces = [f"namespace-{number}" for number in range(20)]

    forwards = snapshot_text(snapshot_query(*namespaces), {"a", "b"}, 15)
    assert forwards == snapshot_text(snapshot_query(*reversed(namespaces)), {"b", "a"}, 15)


def listed(width: int, names: Iterable[str]) -> str:
    return ",".join(name.ljust(width) for name in sorted(names))


@pytest.mark.parametrize(
    ("names", "longest_bytes", "width", "expected"),
    [
        ("ab", 3, 0, ["a,b"]),
        ("ab", 2, 0, ["a", "b"]),
        ("abcdefgh", 3, 0, ["a,b", "c,d", "e,f", "g,h"]),
        ("abc", float("inf"), 99_999, [listed(99_999, "abc")]),
        ("a", 10, 99, ["a".ljust(99)]),
    ],
    ids=["fits", "halved", "halved again", "a server takes any text", "about one name"],
)
def test_a_text_that_is_too_long_is_asked_in_parts(
    names: str, longest_bytes: float, width: int, expected: list[str]
) -> None:
    about = partial(listed, width)
    assert texts_about(frozenset(names), about, longest_bytes) == expected
