"""What a source shows instead of a workload's GPUs → the one cause, with its cure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from keda_gpu_scaler.query.promql_texts import LOOK_PODS
from keda_gpu_scaler.record.causes import Cause, Labels, Look, Unread, cause, unread
from testbed.triggers import spec
from tests.support.snapshots import bert, said, snapshot, unseen

UTIL, ENGINE, USED, POWER = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_POWER_USAGE",
)
HAMI = "hami_container_device_utilization_ratio"
SMI = "nvidia_smi_utilization_gpu_ratio"
RUNAI = "runai_gpu_utilization_per_pod_per_gpu"
OWN = {"namespace": "gpu-operator", "pod": "exporter-x"}
TARGET = ({"__name__": "up", "job": "gpu", "instance": "x:9400", **OWN},)
QUERY = {"query": f"{RUNAI}", "activationThreshold": "5"}


def rows(*metrics: str, **labels: str) -> tuple[Labels, ...]:
    return tuple({"__name__": metric, "job": "gpu", **labels} for metric in metrics)


def named(*metrics: str, namespace: str = "web", pod: str = "bart-0", **labels: str) -> Any:
    """Return rows of pods as a job without honor_labels shows them."""
    return rows(
        *metrics, **OWN, exported_namespace=namespace, exported_pod=pod, GPU_I_PROFILE="", **labels
    )


def look(*series: Labels, pods: Sequence[Labels] = (), **what: Any) -> Look:
    metrics = [{"__name__": row["__name__"], "job": row["job"]} for row in series]
    return Look(metrics=metrics, series=series, targets=TARGET, pods=pods, **what)


IDLE = rows(UTIL, instance="x:9400", **OWN)
SLICE = rows(USED, instance="x:9400", **OWN, GPU_I_PROFILE="1g.6gb")
FULL = [*named(UTIL), *(row for n in range(4) for row in named(UTIL, namespace=f"team-{n}"))]
ASKS, ASKS_NOT = {"asks": True}, {"asks": False}
CAUSES: list[tuple[str, dict[str, Any], dict[str, str], Look, str, str]] = [
    ("refused", ASKS, {}, Look(refused="HTTP 422"), "no-pods", "(HTTP 422): let it answer"),
    (
        "no exporter",
        ASKS,
        {},
        Look(),
        "no-series",
        (
            "the source has no metric of an exporter of accelerators: "
            "let it scrape an exporter on each node that has them"
        ),
    ),
    (
        "an exporter that names no pod",
        ASKS,
        {},
        look(*rows(SMI)),
        "no-series",
        f"{SMI} of utkuozdemir/nvidia_gpu_exporter, and its series name no pod: let the source",
    ),
    (
        "an exporter that nothing knows",
        ASKS,
        {},
        look(*rows("acme_npu_busy_percent")),
        "no-series",
        (
            "the source has acme_npu_busy_percent, which no profile reads: let it scrape an "
            "exporter that a profile reads, or write a query with these metrics"
        ),
    ),
    (
        "five metrics",
        ASKS,
        {},
        look(*rows(*"abcde")),
        "no-series",
        "the source has a, b, c, d, e, which no profile reads",
    ),
    (
        "more metrics",
        ASKS,
        {},
        look(*rows(*"abcdef")),
        "no-series",
        "the source has a, b, c, d, e and 1 more, which no profile reads",
    ),
    (
        "another name",
        ASKS,
        {},
        look(*rows(f"cluster:{UTIL}:avg")),
        "no-series",
        (
            f"{UTIL} is there under another name: cluster:{UTIL}:avg: "
            "keep the exporter's name, or write a query with this one"
        ),
    ),
    (
        "the exporter's own pod, whose namespace was dropped",
        ASKS,
        {},
        look(*IDLE, pods=rows(UTIL, instance="x:9400", pod="exporter-x")),
        "no-pod-labels",
        "name no pod: set DCGM_EXPORTER_KUBERNETES=true",
    ),
    (
        "another exporter without pods, and no pod that asks",
        ASKS_NOT,
        {},
        look(*rows("gpu_gfx_activity")),
        "no-pod-labels",
        "name no pod, and no pod of deployment/bert requests an accelerator: mount",
    ),
    (
        "another signal",
        ASKS,
        {"signal": "sm-activity"},
        look(*rows(UTIL)),
        "no-series",
        "dcgm-exporter does not show the signal sm-activity: there is no DCGM_FI_PROF_SM_ACTIVE",
    ),
    (
        "another signal, which other exporters have as well",
        ASKS,
        {"signal": "power", "activationThreshold": "90"},
        look(*rows(UTIL)),
        "no-series",
        (
            f"the signal power: there is no {POWER}, but {UTIL}: "
            "let the exporter show it, or use another signal"
        ),
    ),
    (
        "another profile",
        ASKS,
        {"profile": "amd"},
        look(*rows(UTIL)),
        "no-series",
        f"profile amd does not read {UTIL}: remove profile",
    ),
    (
        "the operator's jobs",
        ASKS,
        {},
        look(*IDLE, pods=named(UTIL), jobs={"dcgm"}),
        "no-series",
        f"exporter_jobs leaves out 1 job, which alone would show {UTIL}: let the operator",
    ),
    (
        "one of the operator's jobs",
        ASKS,
        {},
        look(*IDLE, pods=named(UTIL), jobs={"gpu"}),
        "no-pods",
        "exporters show pods of 1 other namespace",
    ),
    ("MIG alone", ASKS, {}, look(*SLICE), "no-series", f"no utilization but {ENGINE}: let"),
    (
        "MIG with its average",
        ASKS,
        {},
        look(*rows(ENGINE, GPU_I_PROFILE="1g.6gb")),
        "no-pod-labels",
        "the series of dcgm-exporter name no pod",
    ),
    (
        "MIG without its average",
        ASKS,
        {},
        look(*IDLE, *SLICE, pods=named(USED, namespace="ml")),
        "no-series",
        f"MIG instances, which show no utilization but {ENGINE}: let dcgm-exporter collect",
    ),
    (
        "MIG of this namespace alone",
        ASKS,
        {},
        look(
            *IDLE,
            pods=[*named(UTIL), *rows(USED, exported_namespace="ml", GPU_I_PROFILE="1g")],
        ),
        "no-series",
        "MIG instances",
    ),
    (
        "MIG of other namespaces, by an exporter in this one",
        ASKS,
        {},
        look(
            *rows(UTIL, USED, namespace="ml", GPU_I_PROFILE="1g"),
            pods=[*named(UTIL), *rows(USED, exported_namespace="web", GPU_I_PROFILE="1g")],
        ),
        "no-pods",
        "exporters show pods of 1 other namespace",
    ),
    (
        "dcgm-exporter without pods",
        ASKS,
        {},
        look(*IDLE),
        "no-pod-labels",
        "the series of dcgm-exporter name no pod: set DCGM_EXPORTER_KUBERNETES=true",
    ),
    (
        "ResourceClaims",
        ASKS_NOT,
        {},
        look(*IDLE),
        "no-pod-labels",
        "where it has a ResourceClaim, set KUBERNETES_ENABLE_DRA=true for dcgm-exporter",
    ),
    (
        "AMD without pods",
        ASKS,
        {},
        look(*rows("gpu_gfx_activity")),
        "no-pod-labels",
        "AMD device-metrics-exporter name no pod: mount the nodes' /var/lib/kubelet",
    ),
    (
        "two exporters without pods",
        ASKS,
        {},
        look(*rows("gpu_gfx_activity", UTIL)),
        "no-pod-labels",
        "for AMD device-metrics-exporter, mount",
    ),
    (
        "mindprince's exporter, whose metric another one has with pods",
        ASKS,
        {},
        look(*rows("nvidia_gpu_duty_cycle")),
        "no-pod-labels",
        "the series of mindprince/nvidia_gpu_prometheus_exporter name no pod",
    ),
    (
        "pods by other labels",
        ASKS,
        {},
        look(*rows(UTIL, **OWN, workload_pod="bert-0", workload_namespace="ml", pod_uid="u")),
        "no-pod-labels",
        "by workload_pod, which is not read: relabel workload_pod to pod, and workload_namespace",
    ),
    (
        "pods by another label, and no namespace",
        ASKS,
        {},
        look(*rows(UTIL, **OWN, workload_pod="bert-0")),
        "no-pod-labels",
        "relabel workload_pod to pod, and a label with their namespace to namespace",
    ),
    (
        "a label of the target alone is none",
        ASKS,
        {},
        replace(
            look(*rows(UTIL, kubernetes_pod_name="exporter-x")),
            targets=[{"job": "gpu", "kubernetes_pod_name": "exporter-x"}],
        ),
        "no-pod-labels",
        "the series of dcgm-exporter name no pod",
    ),
    (
        "pods without a namespace",
        ASKS,
        {},
        look(*IDLE, pods=rows(UTIL, exported_pod="bert-0")),
        "no-pod-labels",
        (
            "name pods by exported_pod, and no label names their namespace: "
            "keep the label namespace, or exported_namespace, where relabelling drops it"
        ),
    ),
    (
        "other namespaces",
        ASKS,
        {},
        look(*IDLE, pods=named(UTIL)),
        "no-pods",
        "exporters show pods of 1 other namespace, and none of namespace ml",
    ),
    (
        "many other namespaces",
        ASKS,
        {},
        look(*IDLE, pods=FULL),
        "no-pods",
        "exporters show pods of at least 5 other namespaces",
    ),
    (
        "as many by two jobs",
        ASKS,
        {},
        look(
            *IDLE,
            *rows(UTIL, job="b"),
            pods=[*FULL[1:], *named(UTIL, job="b")],
        ),
        "no-pods",
        "exporters show pods of 5 other namespaces",
    ),
    (
        "pods of this namespace by the source alone",
        ASKS,
        {},
        look(*IDLE, pods=named(UTIL, namespace="ml", pod="bert-0")),
        "no-pods",
        f"the source has {UTIL} of 1 pod of namespace ml, which are not read: compare",
    ),
    (
        "other namespaces, and an exporter without pods",
        ASKS,
        {},
        look(*IDLE, *rows("gpu_gfx_activity"), pods=named(UTIL)),
        "no-pods",
        "the series of AMD device-metrics-exporter name no pod: correct the namespace",
    ),
    (
        "a signal whose exporter names pods by its others",
        ASKS,
        {"signal": "power", "activationThreshold": "90"},
        replace(
            look(*IDLE, pods=named(UTIL)),
            metrics=rows(POWER, UTIL),
        ),
        "no-pods",
        "exporters show pods of 1 other namespace",
    ),
    (
        "nothing is asked for",
        ASKS_NOT,
        {},
        look(*IDLE, pods=named(UTIL)),
        "no-pods",
        (
            "no pod of deployment/bert requests an accelerator, as the cluster lists it: "
            "where it has a ResourceClaim, set"
        ),
    ),
    (
        "others of the namespace",
        {**ASKS, "others": ("bart-0",)},
        {},
        look(*IDLE, pods=named(UTIL)),
        "no-pods",
        (
            "exporters show 1 other pod of namespace ml, and none of deployment/bert: name the "
            "workload of these pods, or check the exporters on the nodes of its own"
        ),
    ),
    (
        "a part of the workload",
        {**ASKS, "own": 2, "others": ("bart-0",)},
        {},
        look(*IDLE, pods=named(UTIL)),
        "no-pods",
        (
            "exporters show 2 pods of deployment/bert, and not all: "
            "check the exporters on the nodes of the others"
        ),
    ),
    (
        "whole cards beside HAMi",
        ASKS,
        {},
        look(*IDLE, *rows(HAMI), pods=named(HAMI)),
        "no-pods",
        (
            "HAMi's monitor shows no whole card, and a share only once its pod has used it: "
            "let the source scrape dcgm-exporter for whole cards as well"
        ),
    ),
    (
        "HAMi's shares",
        ASKS,
        {},
        look(*IDLE, *rows("HostCoreUtilization"), pods=named(UTIL)),
        "no-pods",
        (
            "HAMi shares GPUs here, and dcgm-exporter does not see the pods that have a share: "
            "let the source scrape HAMi's metrics of containers as well"
        ),
    ),
    (
        "a query that a profile makes needless",
        ASKS,
        QUERY,
        look(*rows(RUNAI), pods=rows(RUNAI, pod_namespace="ml", pod_name="bert-0")),
        "no-pods",
        f"names pods by pod_namespace and pod_name: remove query: {RUNAI} is read without one",
    ),
    (
        "a query that drops the namespace",
        {**ASKS, "unmatched": frozenset({"pod", "gpu"})},
        {**QUERY, "query": UTIL},
        look(*IDLE, pods=named(UTIL)),
        "no-pod-labels",
        "the elements of the query have no label of the namespace: keep both",
    ),
    (
        "a query that drops all labels",
        {**ASKS, "unmatched": frozenset()},
        {**QUERY, "query": UTIL},
        look(*IDLE, pods=named(UTIL)),
        "no-pod-labels",
        "no label of the namespace and the pod",
    ),
    (
        "a query of a metric without pods",
        ASKS,
        {**QUERY, "query": UTIL},
        look(*IDLE),
        "no-pod-labels",
        f"the query reads {UTIL}, and its series name no pod: set DCGM_EXPORTER_KUBERNETES=true",
    ),
    (
        "a query of an own metric without pods",
        ASKS,
        {**QUERY, "query": "acme_gpu_busy"},
        look(*rows("acme_gpu_busy")),
        "no-pod-labels",
        "the query reads acme_gpu_busy, and its series name no pod: let its exporter name pods",
    ),
    (
        "a query of an own metric",
        ASKS,
        {**QUERY, "query": "acme_gpu_busy"},
        look(
            *rows("acme_gpu_busy"),
            pods=rows("acme_gpu_busy", kube_namespace="ml", kube_pod="bert-0"),
        ),
        "no-pods",
        "keep these labels in the result, and select the namespace by kube_namespace",
    ),
    (
        "a query of nothing",
        ASKS,
        {**QUERY, "query": "acme_gpu_busy"},
        look(*IDLE),
        "no-pods",
        (
            f"the query reads no metric of an exporter that the source has; it has {UTIL}: "
            "run the query by hand; explain shows its text"
        ),
    ),
    ("a query, and no exporter", ASKS, QUERY, look(), "no-pods", "source has; it has none: run"),
]


@pytest.mark.parametrize(
    ("known", "keys", "seen", "rule", "said_so"),
    [row[1:] for row in CAUSES],
    ids=[row[0] for row in CAUSES],
)
def test_a_source_shows_why(
    known: dict[str, Any], keys: dict[str, str], seen: Look, rule: str, said_so: str
) -> None:
    found = cause(Unread(spec(**keys), **known), seen)
    assert found.rule == rule
    assert said_so in str(found)
    # Its reader may be another tenant.
    assert not any(name in str(found) for name in ("web", "bart", "exporter-x", "team-"))


def test_the_operator_reads_the_names() -> None:
    workload = Unread(spec(), asks=True)
    assert cause(workload, look(*IDLE, pods=named(UTIL))).names == ("web",)
    here = workload._replace(others=("bart-0",))
    assert cause(here, look(*IDLE, pods=named(UTIL))).names == ("bart-0",)
    assert cause(workload, look(*IDLE, jobs={"dcgm"})).names == ("gpu",)
    unlike = named(UTIL, namespace="ml", pod="bert-0")
    assert cause(workload, look(*IDLE, pods=unlike)).names == ("bert-0",)


def test_no_namespaces_are_left_out_of_the_count_unseen() -> None:
    assert len(FULL) == LOOK_PODS


@pytest.mark.parametrize(
    ("pods", "asks", "own"),
    [
        ([], None, 0),
        ([unseen("b", said(asks_gpu=True))], True, 0),
        ([bert("b", 50, status=said(asks_gpu=True))], True, 1),
        ([bert("b", 50), bert("c", 50, status=said(asks_gpu=False))], None, 2),
        ([bert("b", 50, status=said(asks_gpu=False))], False, 1),
    ],
)
def test_what_a_workload_asks_for_is_what_its_pods_do(
    pods: list[Any], asks: bool | None, own: int
) -> None:
    other = replace(bert("d", 50), name="bart-6f846897c4-66lpk")
    seen = snapshot(*pods, other, evidence=None)
    known = unread(spec(), seen)
    assert known == Unread(spec(), asks, own, ("bart-6f846897c4-66lpk",))
    labels = frozenset({"gpu"})
    for count, unmatched in ((0, None), (2, labels)):
        element = replace(seen, unmatched_elements=count, unmatched_labels=labels)
        assert unread(spec(), element).unmatched == unmatched


def test_a_cause_is_a_clause() -> None:
    assert str(Cause("no-pods", "it is so", "do that")) == "it is so: do that"
