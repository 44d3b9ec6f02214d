"""The PromQL of one trigger: its text, and that it is PromQL for every signal of every exporter."""

import itertools
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from keda_gpu_scaler import trigger
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.trigger_query import Explained
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import Kind
from testbed.triggers import access, spec
from tests.query.test_promql_texts import selectors

SHOWN = [(name, signal) for name in profiles.NAMES for signal in profiles.signals(name)]
TEXT = Path(__file__).parents[1] / "data" / "explained.promql"


def explained_promql(spec: TriggerSpec, found: Collection[str] = (), **how: Any) -> str:
    return Explained(spec=spec, found=found, **how).value


def test_the_text_of_a_trigger() -> None:
    bert = ScaledObject("inference", "bert")
    keys = {"workload": "bert", "threshold": "70", "profile": "dcgm-exported", "window": "1m"}
    shown = [
        f"{metric} by exported_namespace, exported_pod"
        for metric in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    ]
    text = explained_promql(trigger.parse(bert, keys, access()), shown_by=shown)

    assert re.sub(r"\s", "", TEXT.read_text(encoding="utf-8")) == re.sub(r"\s", "", text)


def test_every_text_is_promql_and_confined_to_the_namespace(subtests: pytest.Subtests) -> None:
    kinds = (Kind.DEPLOYMENT, Kind.LEADER_WORKER_SET)
    for kind, (profile, signal) in itertools.product(kinds, SHOWN):
        keys = {"workload": f"{kind}/a.b", "signal": signal, "profile": profile}
        given = spec(**keys, activationThreshold="5")
        with subtests.test(f"{kind} {profile} {signal}"):
            for one in selectors(explained_promql(given, profiles.DETECTED, owned=True)):
                places = [
                    each for each in one.matchers.matchers if "namespace" in each.name.lower()
                ]
                assert [(str(each.op), each.value) for each in places] == [("MatchOp.Equal", "ml")]


def test_of_an_exporter_with_a_name_of_its_own_for_the_pod_alone_the_namespace_is_renamed() -> None:
    text = explained_promql(spec(profile="ascend"))
    assert 'npu_chip_info_utilization{namespace="ml",pod_name=~' in text
    assert 'npu_chip_info_utilization{exported_namespace="ml",pod_name=~' in text
    assert "exported_pod" not in text


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({}, ("sum(avg_over_time((avg by (pod) (", ")[2m:15s]))")),
        ({"window": "90s"}, (")[1m30s:15s]))",)),
        ({"aggregation": "average", "gpuAggregation": "max"}, ("avg(avg_over_time((max by (pod)",)),
        ({"aggregation": "max"}, ("count(avg_over_time((", ") * max(avg_over_time((")),
        (
            {"aggregation": "p95"},
            (
                "max(sum(avg_over_time((",
                "[2m:15s])) or label_replace(count(avg_over_time((",
                "[2m:15s])) * quantile(0.95, avg_over_time((",
                '[2m:15s])), "of", "p95", "", ""))',
            ),
        ),
        ({"workload": "lws/v1.b"}, ("sum(avg by (group) (", '"(v1[.]b-[0-9]+)(-.*)?"')),
        ({"workload": "modelserving/b"}, ("sum(avg by (group) (", '"(b-[0-9]+)(-.*)?"')),
        ({"signal": "power", "activationThreshold": "60"}, ("sum by (pod)",)),
        (
            {"profile": "ack-legacy", "signal": "power", "activationThreshold": "60"},
            ("(nvidia_gpu_power_usage_milliwatts{", ">= 0 <= 10000000) / 1000"),
        ),
        ({"podPattern": 'bert-"\\d+'}, (r'exported_pod=~"bert-\"\\d+"',)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_the_text_follows_the_triggers_keys(keys: dict[str, str], parts: tuple[str, ...]) -> None:
    text = explained_promql(spec(**keys))

    assert all(part in text for part in parts)


def test_the_usual_window_is_shorter_for_averages_and_the_step_is_the_sources() -> None:
    averages = ["DCGM_FI_PROF_GR_ENGINE_ACTIVE by exported_namespace, exported_pod"]
    assert ")[1m:15s]" in explained_promql(spec(), shown_by=averages)
    samples = ["DCGM_FI_DEV_GPU_UTIL by exported_namespace, exported_pod"]
    assert ")[2m:15s]" in explained_promql(spec(), shown_by=[*averages, *samples])
    assert ")[2m:30s]" in explained_promql(spec(), step_seconds=30)


BETWEEN = 'kube_pod_owner{namespace="ml",owner_kind='
OWNERS = {
    "deployment/v1.b": (
        f'(label_replace({BETWEEN}"ReplicaSet"}}, "replicaset",',
        'kube_replicaset_owner{namespace="ml",owner_kind="Deployment",owner_name=~"v1[.]b"})',
    ),
    "cronjob/b": ('kube_job_owner{namespace="ml",owner_kind="CronJob",owner_name=~"b"})',),
    "sts/b": (f'and on (pod) {BETWEEN}"StatefulSet",owner_name=~"b"}}',),
    "modelserving/b": (f'{BETWEEN}"ModelServing",owner_name=~"b"}}',),
    "lws/b": (f'{BETWEEN}"StatefulSet",owner_name=~"b(-[0-9]+)?"}}',),
}


@pytest.mark.parametrize("workload", OWNERS)
def test_owners_decide_where_they_are_known(workload: str) -> None:
    text = explained_promql(spec(workload=workload), owned=True)
    assert all(part in text for part in OWNERS[workload])
    assert "kube_" not in explained_promql(spec(workload=workload))


@pytest.mark.parametrize("keys", [{"workload": "isvc/b"}, {"podPattern": "b-.*"}])
def test_only_names_can_tell_where_nobody_owns(keys: dict[str, str]) -> None:
    assert "kube_" not in explained_promql(spec(**keys), owned=True)


def test_the_text_is_about_what_shows_the_pods() -> None:
    given = spec()
    whole = explained_promql(given, profiles.DETECTED)
    shown = ["DCGM_FI_PROF_GR_ENGINE_ACTIVE by namespace, pod", "gone by a, b"]
    text = explained_promql(given, profiles.DETECTED, shown_by=shown)

    assert {one.name for one in selectors(text)} == {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "up"}
    assert "exported_pod=~" not in text
    assert explained_promql(given, profiles.DETECTED, shown_by=["gone by a, b"]) == whole
    share = spec(signal="memory", activationThreshold="5")
    text = explained_promql(
        share, shown_by=["DCGM_FI_DEV_FB_USED by exported_namespace, exported_pod"]
    )
    assert "DCGM_FI_DEV_FB_FREE{" in text


def test_an_exporter_is_read_only_where_none_before_it_shows_the_pod() -> None:
    alone = explained_promql(spec())
    beside = explained_promql(spec(), {"hami", "amd"})

    assert " or on (pod) max by (pod, gpu) (" not in alone
    over_time, _, _ = beside.partition(" or label_replace(sum(avg by (pod) (")
    first, *others = over_time.split(" or on (pod) max by (pod, gpu) (")
    shown = ["DCGM_FI_DEV_GPU_UTIL", "gpu_gfx_activity", "hami_container_device_utilization_ratio"]
    assert [name in part for name, part in zip(shown, (first, *others), strict=True)] == [True] * 3
    assert list(selectors(beside))
