"""The table of exporters: every row can be read without guessing."""

import itertools

import pytest

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles.model import GpuMetric, Part
from keda_gpu_scaler.spec.spec import Signal

POD_LESS = {"mindprince", "nvidia-smi", "drm-exporter"}
MIB = 1024 * 1024
WAYS = [
    (profile, signal, way)
    for profile in profiles.NAMES
    for signal in profiles.signals(profile)
    for way in profiles.metric_sources(profile, signal)
]
METRICS = [
    (profile, signal, way, metric)
    for profile, signal, way in WAYS
    for metric in way.measure.metrics
]


def named(metric: GpuMetric, *words: str) -> bool:
    return any(word in metric.name for word in words)


def test_a_profile_shows_the_signals_it_claims_and_no_other() -> None:
    shown = {profile: set(profiles.signals(profile)) for profile in profiles.NAMES}
    for name, profile in profiles.PROFILES.items():
        assert shown[name] == {signal for each in profile.conventions for signal in each.measures}
    assert shown[profiles.AUTO] == set(Signal) - {Signal.NUMBER}
    assert {profile for profile, signals in shown.items() if not signals} == POD_LESS


def test_a_limit_is_what_one_gpu_can_show_in_the_signals_unit(subtests: pytest.Subtests) -> None:
    largest = {
        Signal.POWER: 10_000,
        Signal.TEMPERATURE: 200,
        Signal.MEMORY_USED: 4 * MIB,
    }
    for profile, signal, way, metric in METRICS:
        limit = metric.limit * metric.factor
        with subtests.test(f"{profile} {signal} {metric.name}"):
            if way.measure.is_ratio:
                assert limit == largest[Signal.MEMORY_USED]
            elif signal.is_percentage:
                assert 100 <= limit <= 101 or (limit == 1000 and named(metric, "hami", "Device_"))
            else:
                assert limit == largest[signal]


def test_a_share_has_all_its_parts(subtests: pytest.Subtests) -> None:
    for profile, signal, way in WAYS:
        parts = {metric.part for metric in way.measure.metrics}
        with subtests.test(f"{profile} {signal} {way.measure.metrics}"):
            if way.measure.is_ratio:
                assert signal is Signal.MEMORY
                assert Part.USED in parts
                assert {Part.FREE, Part.TOTAL} & parts
                assert Part.VALUE not in parts
                assert len({metric.where for metric in way.measure.metrics}) == 1
            else:
                assert signal is not Signal.MEMORY or profile in {"auto", "intel-xpum-v1"}


def test_a_name_that_is_a_percentage_with_one_dcgm_and_a_ratio_with_the_next_is_not_read() -> None:
    ratios = {metric.name for *_, metric in METRICS if metric.name.endswith("_RATIO")}
    assert ratios
    assert all(name.startswith("DCGM_FI_PROF_") for name in ratios)


def test_what_belongs_to_the_board_is_counted_once_per_board() -> None:
    wrong = [
        (profile, signal, way.measure)
        for profile, signal, way in WAYS
        if way.measure.per_board != (signal in {Signal.POWER, Signal.TEMPERATURE})
    ]
    assert wrong == []


def test_auto_reads_everything_that_any_profile_reads() -> None:
    def read(profile: str) -> set[tuple[Signal, str]]:
        return {
            (signal, metric.name)
            for signal in Signal
            for way in profiles.metric_sources(profile, signal)
            for metric in way.measure.metrics
        }

    everything = read(profiles.AUTO)
    assert {name for name in profiles.PROFILES if not read(name) <= everything} == set()


def test_a_found_exporter_comes_after_dcgm_exporter(subtests: pytest.Subtests) -> None:
    base = profiles.metric_sources(profiles.AUTO, Signal.UTILIZATION, found=frozenset())
    assert all(
        way.rank == 0 and named(metric, "DCGM_", "dcgm_")
        for way in base
        for metric in way.measure.metrics
    )
    for found in profiles.DETECTED:
        both = profiles.metric_sources(profiles.AUTO, Signal.UTILIZATION, found=frozenset({found}))
        added = both[len(base) :]
        with subtests.test(found):
            assert both[: len(base)] == base
            assert [way[:2] for way in added] == [
                way[:2] for way in profiles.metric_sources(found, Signal.UTILIZATION)
            ]
            assert all(way.rank > 0 for way in added)


def test_a_pod_is_known_by_the_labels_of_every_profile() -> None:
    for profile in profiles.NAMES:
        for way in profiles.metric_sources(profile, Signal.UTILIZATION):
            for namespace, pod in itertools.product(way.labels.namespaces, way.labels.pods):
                row = {namespace: "ml", pod: "bert-0"}
                assert profiles.namings(row) == [("ml", "bert-0", namespace, pod)]
                assert profiles.pod_of(row) == ("ml", "bert-0")


def test_a_row_of_which_no_label_names_the_namespace_is_nobodys() -> None:
    for labels in ({"pod": "bert-0"}, {"exported_pod": "bert-0", "pod": "x"}, {"namespace": "ml"}):
        assert profiles.namings(labels) == []
        assert profiles.namings(labels, ()) == []


EXPORTER = {"namespace": "gpu-operator", "pod": "dcgm-x"}
AS_NAMED = {"namespace": "ml", "pod": "bert-0"}
BERT = [("ml", "bert-0")]


@pytest.mark.parametrize(
    ("own", "row", "pods"),
    [
        pytest.param(
            {"namespace": "gpu-operator"},
            {"namespace": "gpu-operator", "exported_namespace": "ml", "pod": "bert-0"},
            BERT,
            id="a target with a namespace and no pod",
        ),
        pytest.param(
            {"namespace": "gpu-operator", "pod_name": "dcgm-x"},
            {**AS_NAMED, "pod_name": "dcgm-x"},
            BERT,
            id="a target with another exporter's label, with honor_labels",
        ),
        pytest.param({}, {**AS_NAMED, "pod_name": "bert-0"}, BERT, id="a label that is copied"),
        pytest.param(
            {"namespace": "ml", "pod": "dcgm-x"},
            AS_NAMED,
            BERT,
            id="the exporter's namespace by chance, with honor_labels",
        ),
        pytest.param(
            {"namespace": "ml"},
            {"namespace": "ml", "exported_namespace": "other", "pod": "bert-0"},
            [("other", "bert-0")],
            id="another namespace's pod, in the exporter's",
        ),
        pytest.param(EXPORTER, EXPORTER, [], id="an idle GPU"),
        pytest.param(
            {"namespace": "gpu-operator", "pod_name": "dcgm-x"},
            {"namespace": "gpu-operator", "pod_name": "dcgm-x"},
            [],
            id="an idle GPU of a target with another exporter's label",
        ),
        pytest.param(
            EXPORTER,
            {**AS_NAMED, "exported_pod": "node-7"},
            [("ml", "node-7"), ("ml", "bert-0")],
            id="two labels that are not the target's",
        ),
        pytest.param(
            None,
            {**AS_NAMED, "exported_pod": "node-7"},
            [("ml", "node-7")],
            id="two labels, and no target is known",
        ),
        pytest.param(None, EXPORTER, [("gpu-operator", "dcgm-x")], id="no target is known"),
    ],
)
def test_a_targets_own_label_names_the_pod_only_if_no_other_one_does(
    own: dict[str, str] | None, row: dict[str, str], pods: list[tuple[str, str]]
) -> None:
    targets_own = None if own is None else frozenset(own.items())
    assert [naming[:2] for naming in profiles.namings(row, targets_own)] == pods
