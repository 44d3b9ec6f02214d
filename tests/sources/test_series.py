"""Raw rows → GPU series: labels, preference, units, refusals."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles.model import GpuMetric, MetricSource
from keda_gpu_scaler.snapshot.attribution import Breadth
from keda_gpu_scaler.snapshot.observation import Row, Series, Target
from keda_gpu_scaler.sources.series import LARGEST_GPUS, Exporters, read_series
from keda_gpu_scaler.spec.spec import Signal
from tests.support.snapshots import COLLECTION

UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
EXPORTERS = Exporters(collection_seconds=COLLECTION)
EXPORTER = {"pod": "dcgm-exporter-x", "namespace": "gpu-operator"}
OWNER = {"exported_pod": "bert-0", "exported_namespace": "ml", **EXPORTER}


def row(name: str, *values: float, **labels: str) -> Row:
    """Return a row of pod ml/bert-0 on GPU-a, with its labels changed or taken away (empty)."""
    target = {"job": "dcgm", "instance": "10.0.0.1:9400"}
    known = {"__name__": name, **OWNER, **target, "UUID": "GPU-a", "gpu": "0", **labels}
    points = [(15.0 * number, value) for number, value in enumerate(values)]
    return Row.of({label: text for label, text in known.items() if text}, points)


def read(*rows: Row, signal: Signal = Signal.UTILIZATION, profile: str = "auto") -> list[Series]:
    return list(read_series(rows, profile, signal, EXPORTERS)[0])


def refused(*rows: Row, signal: Signal = Signal.UTILIZATION) -> int:
    return read_series(rows, "auto", signal, EXPORTERS)[1]


# Labels


PLAIN = {"exported_pod": "", "exported_namespace": "", "pod": "bert-0", "namespace": "ml"}
OLD = {
    "exported_pod": "",
    "exported_namespace": "",
    "pod_name": "bert-0",
    "pod_namespace": "ml",
    "uuid": "GPU-a",
    "UUID": "",
}


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="exported beside the exporter's own"),
        pytest.param({"pod": "", "namespace": ""}, id="exported alone"),
        pytest.param(PLAIN, id="plain"),
        pytest.param(OLD, id="old beside the exporter's own"),
        pytest.param({**OLD, "pod": "", "namespace": ""}, id="old alone"),
        pytest.param({"pod_name": "other", "pod_namespace": "other"}, id="exported beats old"),
        pytest.param({"exported_pod": "", "pod": "bert-0"}, id="only the namespace renamed"),
        pytest.param({"exported_namespace": "", "namespace": "ml"}, id="only the pod renamed"),
        pytest.param({**OLD, "pod_namespace": "", "namespace": "ml"}, id="only the pod is old"),
    ],
)
def test_every_label_scheme_names_the_workloads_pod(labels: dict[str, str]) -> None:
    given = row(UTIL, 50, **labels)
    (gpu,) = read(given)
    pod_labels = [label for label in profiles.POD_LABELS if given.labels.get(label) == "bert-0"]

    assert (gpu.namespace, gpu.pod, gpu.gpu) == ("ml", "bert-0", "GPU-a")
    assert gpu.target == Target("dcgm", "10.0.0.1:9400")
    assert (gpu.present, gpu.times, gpu.values) == ((0.0,), (0.0,), (50.0,))
    assert gpu.shows_free_gpus
    assert not gpu.averaged
    assert [text.partition(" by ")[0] for text in gpu.shown_by] == [UTIL]
    assert [text.rpartition(", ")[2] for text in gpu.shown_by] == pod_labels
    assert profiles.pod_of(given.labels) == ("ml", "bert-0")


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({**PLAIN, "pod": ""}, id="no pod"),
        pytest.param({**PLAIN, "namespace": ""}, id="no namespace"),
    ],
)
def test_a_row_without_a_pod_is_nobodys(labels: dict[str, str]) -> None:
    given = row(UTIL, 50, **labels)

    assert read(given) == []
    assert profiles.pod_of(given.labels) is None


def test_a_tenant_s_row_that_names_two_pods_is_overruled_as_one_that_names_one_is() -> None:
    """Its target has other labels, so that both of its own may name the pod."""
    labels = {**PLAIN, "job": "app", "instance": "10.0.0.9:8080", "UUID": "GPU-b"}
    given = [row(UTIL, 50), row(UTIL, 100, **labels, pod_name="dcgm-exporter-x")]
    texts = EXPORTER, {"pod": "app-0", "namespace": "other"}
    own_labels = {each.target: own.items() for each, own in zip(given, texts, strict=True)}
    exporters = replace(
        EXPORTERS, own_labels=own_labels, breadths={"dcgm": Breadth(20, 5), "app": Breadth(1, 9)}
    )
    found, _, overruled = read_series(given, "auto", Signal.UTILIZATION, exporters)
    assert [(each.gpu, each.rivals) for each in found] == [("GPU-a", ())]
    assert overruled == {"app": "dcgm"}


# Values

AMD = {**PLAIN, "UUID": "", "gpu": "", "gpu_id": "0"}
BOARD = {**AMD, "serial_number": "S1"}
KUBE = {
    **PLAIN,
    "pod": "xpum",
    "namespace": "monitoring",
    "kube_pod": "bert-0",
    "kube_namespace": "ml",
}
HAMI = {"device_uuid": "GPU-a", "vdevice_index": "0", "UUID": "", "gpu": ""}
HAMI_UTIL = "hami_container_device_utilization_ratio"
PACKAGE, AVERAGE = "gpu_package_power", "gpu_average_package_power"
TOTAL = "DCGM_FI_DEV_FB_TOTAL"
ZERO, LATER = 0.0, 15.0
OF_A = "GPU-a"

Shown = dict[str, dict[float, float]]
"""The values of each GPU at their times."""
CASES: dict[Signal, dict[str, tuple[list[Row], Shown]]] = {
    Signal.UTILIZATION: {
        "no points": ([row(UTIL)], {}),
        "a number on its target where there is no UUID": (
            [row(UTIL, 1, UUID=""), row(UTIL, 2, UUID="", gpu="1")],
            {"10.0.0.1:9400#0": {ZERO: 1}, "10.0.0.1:9400#1": {ZERO: 2}},
        ),
        "instances": (
            [row(ENGINE, 0.5, GPU_I_ID=number) for number in "12"],
            {"GPU-a/1": {ZERO: 50}, "GPU-a/2": {ZERO: 50}},
        ),
        "a false zero of an instance": ([row(UTIL, 0, GPU_I_ID="1")], {}),
        "and its average": (
            [row(UTIL, 0, GPU_I_ID="1"), row(ENGINE, 0.9, GPU_I_ID="1")],
            {"GPU-a/1": {ZERO: 90}},
        ),
        "the average before the sample": (
            [row(UTIL, 100, 100), row(ENGINE, 0.25, 0.5)],
            {OF_A: {ZERO: 25, LATER: 50}},
        ),
        "the sample where the average ends": (
            [row(UTIL, 100, 90), row(ENGINE, 0.25)],
            {OF_A: {ZERO: 25, LATER: 90}},
        ),
        "the sample for an average that is refused": (
            [row(UTIL, 70), row(ENGINE, math.nan)],
            {OF_A: {ZERO: 70}},
        ),
        "the larger of duplicates": (
            [row(UTIL, 10, 90), row(UTIL, 80, 20)],
            {OF_A: {ZERO: 80, LATER: 90}},
        ),
        "targets apart, one after the other": (
            [
                row(UTIL, 1, UUID=""),
                Row.of(row(UTIL, UUID="", instance="10.0.0.2:9400").labels, [(LATER, 2)]),
            ],
            {"10.0.0.1:9400#0": {ZERO: 1}, "10.0.0.2:9400#0": {LATER: 2}},
        ),
        "once, where a host shows it with its UUID and without": (
            [
                row(UTIL, 80),
                row(UTIL, 70, UUID="GPU-b", gpu="1"),
                row(UTIL, 70, UUID="", gpu="1", instance="10.0.0.1:9401"),
                row(UTIL, 81, UUID=""),
            ],
            {OF_A: {ZERO: 81}, "GPU-b": {ZERO: 70}},
        ),
        "once, where a host shows it at two ports without its UUID": (
            [row(UTIL, 80, UUID=""), row(UTIL, 80, UUID="", instance="10.0.0.1:9401")],
            {"10.0.0.1:9400#0": {ZERO: 80}},
        ),
        "once, an instance that a host shows with its UUID and without": (
            [
                *(row(ENGINE, 0.5, GPU_I_ID=part) for part in "12"),
                *(row(ENGINE, 0.5, GPU_I_ID=part, UUID="") for part in "12"),
            ],
            {"GPU-a/1": {ZERO: 50}, "GPU-a/2": {ZERO: 50}},
        ),
        "nothing where two hosts show GPUs at an instant, of which one has no UUID": (
            [
                row(UTIL, 80, 80),
                row(UTIL, 70, UUID="", gpu="1"),
                row(UTIL, 80, UUID="", instance="node-1"),
            ],
            {OF_A: {LATER: 80}, "10.0.0.1:9400#1": {}, "node-1#0": {}},
        ),
        "nothing where a host shows a GPU that has neither UUID nor number": (
            [row(UTIL, 80), row(UTIL, 80, UUID="", gpu="")],
            {OF_A: {}, "10.0.0.1:9400#": {}},
        ),
        "nothing where two UUIDs have the number of a GPU without one": (
            [row(UTIL, 80), row(UTIL, 70, UUID="GPU-b"), row(UTIL, 80, UUID="")],
            {OF_A: {}, "GPU-b": {}, "10.0.0.1:9400#0": {}},
        ),
        "the sample where the average is stuck at 0": (
            [row(UTIL, 90, 80, 70, 60, 50), row(ENGINE, 0, 0, 0, 0, 0.5)],
            {OF_A: {0: 90, 15: 80, 30: 70, 45: 60, 60: 50}},
        ),
        "of work with pauses beside a stuck average, the idle samples as well": (
            [row(UTIL, 90, 0, 2, 0, 50), row(ENGINE, 0, 0, 0, 0, 0)],
            {OF_A: {0: 90, 15: 0, 30: 0, 45: 0, 60: 50}},
        ),
        "nothing of a stuck average where the sample is refused": (
            [row(UTIL, 90, 80, 70, 60, 2**47), row(ENGINE, 0, 0, 0, 0, 0)],
            {OF_A: {0: 90, 15: 80, 30: 70, 45: 60}},
        ),
        "the average beside a refused sample, where it is not known to be stuck": (
            [row(UTIL, 2**47, 2**47), row(ENGINE, 0, 0.5)],
            {OF_A: {ZERO: 0, LATER: 50}},
        ),
        "nothing while an average may only be older than the work": (
            [row(UTIL, 0, 90, 80, 70, 60), row(ENGINE, 0, 0, 0, 0, 0.5)],
            {OF_A: {0: 0, 60: 50}},
        ),
        "nothing twice, where the average shows work in between": (
            [row(UTIL, 90, 0, 90, 90, 90), row(ENGINE, 0, 0, 0.1, 0, 0)],
            {OF_A: {15: 0, 30: 10}},
        ),
        "the average of a GPU that is as idle as its samples": (
            [row(UTIL, 2, 1, 2, 2, 2), row(ENGINE, 0, 0, 0, 0, 0)],
            {OF_A: {0: 0, 15: 0, 30: 0, 45: 0, 60: 0}},
        ),
        "an instantaneous number where the one over a second is stuck at 0": (
            [
                row("gpu_gfx_activity", 0, 0, 0, 0, **AMD),
                row("gpu_gfx_busy_instantaneous", 90, 90, 90, 90, **AMD),
            ],
            {"10.0.0.1:9400#0": {0: 90, 15: 90, 30: 90, 45: 90}},
        ),
        "partitions, of which the first is the board": (
            [
                row("gpu_gfx_busy_instantaneous", 7, **{**BOARD, "gpu_partition_id": part})
                for part in ("", "0", "1")
            ],
            {"S1": {ZERO: 7}, "S1/1": {ZERO: 7}},
        ),
        "a false zero of a partition": (
            [row("gpu_gfx_activity", 0, **AMD, gpu_partition_id="1")],
            {},
        ),
        "no tiles beside their device": (
            [
                row("xpum_engine_ratio", 0.5, **KUBE, uuid="X1"),
                row("xpum_engine_ratio", 0.9, **KUBE, uuid="X1", sub_dev="0"),
            ],
            {"X1": {ZERO: 50}},
        ),
        "one of two exporters": (
            [row(HAMI_UTIL, 0, 0, **HAMI), row(UTIL, 90, 90)],
            {OF_A: {ZERO: 90, LATER: 90}},
        ),
        "the exporter that still shows it": (
            [row(UTIL, 90), row(HAMI_UTIL, 40, 45, **HAMI)],
            {"GPU-a/0": {ZERO: 40, LATER: 45}},
        ),
    },
    Signal.POWER: {
        "a board once, however many instances repeat it": (
            [row("DCGM_FI_DEV_POWER_USAGE", 150, GPU_I_ID=number) for number in "12"],
            {OF_A: {ZERO: 150}},
        ),
        "a zero gives way to what a card does have": (
            [row(PACKAGE, 0, **AMD), row(AVERAGE, 301, **AMD)],
            {"10.0.0.1:9400#0": {ZERO: 301}},
        ),
    },
    Signal.MEMORY: {
        "the share of used in used and free": (
            [row(USED, 30, 60), row(FREE, 70, 20)],
            {OF_A: {ZERO: 30, LATER: 75}},
        ),
        "halves of different instants": (
            [row(USED, 30, 30), Row.of(row(FREE, 0, 70).labels, [(LATER, 70.0)])],
            {OF_A: {LATER: 30}},
        ),
        "no memory": ([row(USED, 0), row(FREE, 0)], {OF_A: {}}),
        "of the total where nothing is free": (
            [row(USED, 30, 30), row(FREE, 70), row(TOTAL, 120, 120)],
            {OF_A: {ZERO: 30, LATER: 25}},
        ),
        "a share that no gpu can have": (
            [row(USED, 105, 30), row(TOTAL, 100, 1)],
            {OF_A: {ZERO: 105}},
        ),
    },
}


@pytest.mark.parametrize(
    ("signal", "name"), [(signal, name) for signal in CASES for name in CASES[signal]]
)
def test_what_rows_say_of_gpus_in_any_order(signal: Signal, name: str) -> None:
    """Each signal's unit and names are on the exporters' pages, in `test_series_pages`."""
    rows, expected = CASES[signal][name]
    for given_rows in (rows, rows[::-1]):
        shown = {
            gpu.gpu: dict(zip(gpu.times, gpu.values, strict=True))
            for gpu in read(*given_rows, signal=signal)
        }
        assert shown == expected


def test_only_averages_alone_are_averaged() -> None:
    for second, averaged in ((0.5, True), (math.nan, False)):
        (gpu,) = read(row(UTIL, 100, 90), row(ENGINE, 0.25, second))
        assert gpu.averaged is averaged
    (gpu,) = read(row(UTIL, 100), row(ENGINE, 0.25), profile="dcgm-exported")
    assert (gpu.values, gpu.averaged) == ((100,), False)


def test_a_metric_that_is_stuck_at_0_is_named_with_the_one_that_is_read() -> None:
    (gpu,) = read(row(UTIL, 90, 90, 90, 90), row(ENGINE, 0, 0, 0, 0))
    assert gpu.stuck == f"{ENGINE} is stuck at 0, so {UTIL} is read"
    assert [text.partition(" by ")[0] for text in gpu.shown_by] == [UTIL]
    assert not gpu.averaged


def test_an_average_that_shows_work_is_not_read_beside_samples_of_0() -> None:
    """Work between two samples is honest, and an average that is stuck looks the same."""
    (gpu,) = read(row(UTIL, *[0] * 9), row(ENGINE, *[0.4] * 9), profile="dcgm-exported")
    assert (set(gpu.values), gpu.stuck) == ({0}, "")
    (gpu,) = read(row(UTIL, *[0] * 9), row(ENGINE, *[0.4] * 9))
    assert (set(gpu.values), gpu.stuck) == ({40}, "")


@pytest.mark.parametrize(
    ("scraped", "is_stuck"),
    [
        pytest.param({0: 0, 15: 0, 30: 0, 45: 0}, False, id="one scrape, repeated"),
        pytest.param({0: -20, 15: 10, 30: 10, 45: 10}, False, id="two, half a minute apart"),
        pytest.param({0: -20, 15: 10, 30: 10, 45: 40}, True, id="three"),
        pytest.param({0: -60, 15: 0, 30: 0, 45: 0}, True, id="two, a minute apart"),
    ],
)
def test_a_contradiction_is_believed_in_scrapes_of_two_collections(
    scraped: dict[float, float], *, is_stuck: bool
) -> None:
    rows = [row(UTIL, 90, 90, 90, 90), row(ENGINE, 0, 0, 0, 0)]
    target = Target("dcgm", "10.0.0.1:9400")
    exporters = Exporters(collection_seconds=COLLECTION, good_scrapes={target: scraped})
    ((gpu,), *_) = read_series(rows, "auto", Signal.UTILIZATION, exporters)
    assert gpu.present == (0, 15, 30, 45)
    assert gpu.values == ((90, 90, 90, 90) if is_stuck else ())
    assert gpu.contradicted_at == (-math.inf if is_stuck else 45)


def test_pods_are_read_from_whoever_shows_them() -> None:
    gpus = read(row(HAMI_UTIL, 40, **{**HAMI, "exported_pod": "bert-1"}), row(UTIL, 90))

    assert {gpu.pod: gpu.values for gpu in gpus} == {"bert-0": (90,), "bert-1": (40,)}


def test_samples_of_the_exporter_that_is_passed_over_are_not_refused() -> None:
    assert refused(row(UTIL, 90), row(HAMI_UTIL, 2000, **HAMI)) == 0
    assert refused(row(HAMI_UTIL, 2000, **HAMI)) == 1
    assert refused(row(PACKAGE, 0, **AMD), row(AVERAGE, 301, **AMD), signal=Signal.POWER) == 0


# Refusals


UNBELIEVABLE = {
    UTIL: (math.nan, math.inf, -math.inf, -1, 101, 2147483632, 9223372036854775794),
    ENGINE: (1.02, -0.01),
}


@pytest.mark.parametrize("name", UNBELIEVABLE)
def test_an_unbelievable_number_is_refused_and_counted(name: str) -> None:
    for value in UNBELIEVABLE[name]:
        given = row(name, 0.5, value, 0.5)
        (gpu,) = read(given)
        assert (refused(given), gpu.present, gpu.times) == (1, (0, 15, 30), (0, 30)), value


def test_the_limits_themselves_are_believable() -> None:
    ((gpu,), refusals, _) = read_series([row(UTIL, 0, 100)], "auto", Signal.UTILIZATION, EXPORTERS)
    assert (gpu.values, refusals) == ((0, 100), 0)
    assert refused(row(ENGINE, 0, 1.01)) == 0


# Properties


names = st.sampled_from(sorted(profiles.KNOWN_METRICS))
labels = st.fixed_dictionaries(
    {"__name__": names | st.text("aD_:", max_size=3)},
    optional={
        label: st.sampled_from(["", "a", "b", "1"])
        for label in (
            "exported_pod",
            "exported_namespace",
            "pod",
            "namespace",
            "pod_name",
            "pod_namespace",
            "UUID",
            "uuid",
            "gpu",
            "GPU_I_ID",
            "job",
            "instance",
        )
    },
)
READABLE = [profiles.AUTO, *(name for name, row in profiles.PROFILES.items() if row.conventions)]
points = st.lists(
    st.tuples(st.integers(0, 8).map(float), st.floats() | st.floats(0, 1) | st.floats(0, 120)),
    max_size=5,
    unique_by=lambda point: point[0],
).map(sorted)
rows = st.lists(st.builds(Row.of, labels, points), max_size=12)


@given(rows, st.sampled_from(READABLE), st.sampled_from(Signal))
def test_any_rows_are_read_without_an_error(
    given_rows: list[Row], profile: str, signal: Signal
) -> None:
    gpus, refusals, _ = read_series(given_rows, profile, signal, EXPORTERS)
    twice, doubled, _ = read_series([*given_rows, *given_rows], profile, signal, EXPORTERS)
    named = {profiles.pod_of(one.labels) for one in given_rows}
    believable = [value for gpu in gpus for value in gpu.values]

    assert (repr(twice), doubled) == (repr(gpus), 2 * refusals)
    assert {(gpu.namespace, gpu.pod) for gpu in gpus} <= named
    assert 0 <= refusals <= sum(len(given.times) for given in given_rows)
    assert all(math.isfinite(value) and value >= 0 for value in believable)
    assert all(value <= 1000 for value in believable) or not signal.is_percentage
    for gpu in gpus:
        assert gpu.present
        assert list(gpu.present) == sorted(set(gpu.present))
        assert list(gpu.times) == sorted(set(gpu.times))
        assert set(gpu.times) <= set(gpu.present)
        assert len(gpu.times) == len(gpu.values)


MEANT = [
    (profile, signal, way, metric)
    for profile in READABLE
    for signal in profiles.signals(profile)
    for way in profiles.metric_sources(profile, signal)
    for metric in way.measure.metrics
    if not way.measure.is_ratio
]
NOISE = ("Hostname", "hostname", "pci_bus_id", "vgpu", "modelName", "replica", "xcc_index", "src")


def meant(way: MetricSource, metric: GpuMetric, noise: dict[str, str], value: float) -> Row:
    """Return a row of one GPU of ml/bert-0 as `way` names it, with other labels beside."""
    named = {way.labels.namespace: "ml", way.labels.pod: "bert-0", way.labels.gpu[0]: "GPU-a"}
    where = {label: texts[-1] for label, texts in metric.where if texts[-1]}
    target = {"job": "gpus", "instance": "node:9400"}
    labels = {**noise, **named, **where, **target, "__name__": metric.name}
    return Row.of(labels, [(0.0, value)])


noises = st.dictionaries(st.sampled_from(NOISE), st.sampled_from(["a", "b", ""]))


@given(st.sampled_from(MEANT), st.lists(noises, min_size=1, max_size=4), st.floats(0.0, 1.0))
def test_labels_that_are_not_its_identity_make_no_second_gpu(
    case: tuple[str, Signal, MetricSource, GpuMetric], churn: list[dict[str, str]], share: float
) -> None:
    profile, signal, way, metric = case
    value = share * metric.limit
    (gpu,) = read(
        *(meant(way, metric, noise, value) for noise in churn), signal=signal, profile=profile
    )

    assert (gpu.namespace, gpu.pod, gpu.gpu) == ("ml", "bert-0", "GPU-a")
    unknown = metric.zero_is_unknown and value == 0
    assert gpu.values == (() if unknown else (value * metric.factor,))


@pytest.mark.slow
def test_more_gpus_than_any_cluster_has_are_not_read() -> None:
    uuids = (f"GPU-{number}" for number in range(LARGEST_GPUS + 1))
    rows = [row("DCGM_FI_DEV_GPU_UTIL", 1, UUID=uuid) for uuid in uuids]
    with pytest.raises(errors.SourceMalformedError, match="spread the triggers over several"):
        read_series(rows, "auto", Signal.UTILIZATION, EXPORTERS)
