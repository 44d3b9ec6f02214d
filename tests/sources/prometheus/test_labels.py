"""Whose GPUs rows of a real server show: labels renamed in part, and two jobs about one pod."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.prometheus_source import connected

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ML = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300, 120)
EXPORTER = {"namespace": "gpu-operator", "pod": "dcgm-x"}
EXPORTED = {"exported_namespace": "ml", "exported_pod": "web-0", **EXPORTER}
PLAIN = {"namespace": "ml", "pod": "web-0"}
OTHERS = {"exported_namespace": "other", "exported_pod": "web-0"}
TENANT = {"namespace": "team-a", "pod": "app-0"}


@dataclass(frozen=True, slots=True)
class Exporter:
    """One scrape target: its own labels, and those of its GPUs with their load."""

    own: Mapping[str, str]
    gpus: Sequence[tuple[Mapping[str, str], float]]
    job: str = "dcgm"
    instance: str = "10.0.0.1:9400"
    metric: str = UTIL
    has_up: bool = True

    def series(self, now: float) -> list[Series]:
        times = [now - 15 * back for back in reversed(range(40))]
        target = {"job": self.job, "instance": self.instance}
        up = Series("up", {**target, **self.own}, [(at, 1.0) for at in times])
        gpus = [
            Series(
                self.metric,
                {**target, "UUID": f"GPU-{self.job}-{number}", "gpu": str(number), **labels},
                [(at, load) for at in times],
            )
            for number, (labels, load) in enumerate(self.gpus)
        ]
        return [up, *gpus] if self.has_up else gpus


def more(job: str, count: int, metric: str = UTIL) -> list[Exporter]:
    """Return further targets of a job, each with a GPU of another pod."""
    return [
        Exporter({}, [({"namespace": "far", "pod": f"far-{n}"}, 1)], job, f"10.1.0.{n}:9", metric)
        for n in range(count)
    ]


WEB = {"web-0": [80.0]}
CASES: dict[str, tuple[list[Exporter], dict[str, list[float]]]] = {
    "both labels renamed": ([Exporter(EXPORTER, [(EXPORTED, 80), (EXPORTER, 0)])], WEB),
    "only the namespace renamed": (
        [
            Exporter(
                {"namespace": "gpu-operator"},
                [({"exported_namespace": "ml", "namespace": "gpu-operator", "pod": "web-0"}, 80)],
            )
        ],
        WEB,
    ),
    "a target label that another exporter has for the pod": (
        [
            Exporter(
                {"namespace": "gpu-operator", "pod_name": "dcgm-x"},
                [({**PLAIN, "pod_name": "dcgm-x"}, 80)],
            )
        ],
        WEB,
    ),
    "a label that a rule has copied": ([Exporter({}, [({**PLAIN, "pod_name": "web-0"}, 80)])], WEB),
    "a namesake, beside an exporter in the workload's namespace": (
        [
            Exporter(
                {"namespace": "ml"},
                [
                    ({"exported_namespace": "ml", "namespace": "ml", "pod": "web-0"}, 5),
                    ({"exported_namespace": "other", "namespace": "ml", "pod": "web-0"}, 95),
                ],
            )
        ],
        {"web-0": [5.0]},
    ),
    "an exporter in the workload's namespace, with honor_labels": (
        [Exporter({"namespace": "ml", "pod": "dcgm-x"}, [(PLAIN, 80)])],
        WEB,
    ),
    "an idle GPU, beside an exporter in the workload's namespace": (
        [Exporter({**EXPORTER, "namespace": "ml"}, [({**EXPORTER, "namespace": "ml"}, 0)])],
        {},
    ),
    "another namespace's pod": ([Exporter(EXPORTER, [({**EXPORTER, **OTHERS}, 95)])], {}),
    "no namespace": ([Exporter({}, [({"pod": "web-0"}, 80)])], {}),
    "no up": (
        [Exporter({}, [({**PLAIN, "exported_pod": "web-0", "pod": "dcgm-x"}, 80)], has_up=False)],
        WEB,
    ),
    "a tenant that shows 0 for a pod": (
        [
            Exporter(EXPORTER, [(EXPORTED, 80), ({**EXPORTER, **OTHERS}, 1)]),
            Exporter(TENANT, [({**EXPORTED, **TENANT}, 0)] * 3, "app", "10.9.9.9:80"),
        ],
        WEB,
    ),
    "a tenant that shows many namespaces": (
        [
            Exporter(EXPORTER, [(EXPORTED, 80)]),
            *more("dcgm", 1),
            Exporter(
                TENANT,
                [
                    ({**EXPORTED, **TENANT}, 0),
                    *(({**OTHERS, **TENANT, "exported_namespace": f"x-{n}"}, 0) for n in range(9)),
                ],
                "app",
                "10.9.9.9:80",
            ),
        ],
        WEB,
    ),
    "a tenant that shows a preferred exporter's metric": (
        [
            Exporter({}, [({**PLAIN, "gpu_uuid": "a"}, 80)], "amd", metric="gpu_gfx_activity"),
            *more("amd", 3, metric="gpu_gfx_activity"),
            Exporter(TENANT, [({**EXPORTED, **TENANT}, 0)], "app", "10.9.9.9:80"),
        ],
        WEB,
    ),
    "a job that scrapes a host twice, and drops the UUID once": (
        [
            Exporter(EXPORTER, [(EXPORTED, 80), ({**EXPORTED, "UUID": ""}, 70)]),
            Exporter({}, [({**PLAIN, "UUID": ""}, 80), (PLAIN, 70)], instance="10.0.0.1:9401"),
        ],
        {"web-0": [70.0, 80.0]},
    ),
    "a job that drops the UUID, beside a wider one": (
        [
            Exporter(EXPORTER, [(EXPORTED, 80)]),
            *more("dcgm", 1),
            Exporter({}, [({**PLAIN, "UUID": ""}, 80)], "managed"),
        ],
        WEB,
    ),
}


@ON_EVERY_SERVER
@pytest.mark.parametrize(("exporters", "shown"), CASES.values(), ids=CASES)
async def test_a_row_is_about_the_pod_that_uses_the_gpu_or_about_none(
    prometheus: PrometheusServer, exporters: list[Exporter], shown: dict[str, list[float]]
) -> None:
    now = prometheus.now()
    await prometheus.write([each for exporter in exporters for each in exporter.series(now)])
    async with connected(prometheus.url, step="15s") as source:
        await source.synchronize()
        observation = await source.fetch(ML, source.instant())
        history = await source.history(ML, source.instant())
    for found in (observation, history):
        loads: dict[str, dict[str, float]] = {}
        for gpu in found.series:
            assert (gpu.namespace, gpu.rivals) == ("ml", ())
            loads.setdefault(gpu.pod, {})[gpu.gpu] = gpu.values[-1]
        assert {pod: sorted(of_gpus.values()) for pod, of_gpus in loads.items()} == shown


@ON_EVERY_SERVER
async def test_with_the_exporters_jobs_named_no_other_one_counts(
    prometheus: PrometheusServer,
) -> None:
    now, stated = prometheus.now(), list[facts.Fact]()
    exporters = [
        Exporter(EXPORTER, [(EXPORTED, 80)]),
        *more("team-a/app", 3),
        Exporter(TENANT, [({**EXPORTED, **TENANT}, 0)], "team-a/app", "10.9.9.9:80"),
    ]
    await prometheus.write([each for exporter in exporters for each in exporter.series(now)])
    for jobs, load, overruled in (("", 0, "dcgm"), ("dcgm, other", 80, None)):
        stated.clear()
        settings: dict[str, Any] = {"step": "15s", "exporter_jobs": jobs}
        async with connected(prometheus.url, stated.append, **settings) as source:
            await source.synchronize()
            at = source.instant()
            observation = await source.fetch(ML, at)
            gone = await source.locate(["GPU-team-a/app-0", "GPU-dcgm-0"], at)
        assert [gpu.values[-1] for gpu in observation.series] == [load]
        losers = [fact.job for fact in stated if isinstance(fact, facts.JobOverruled)]
        assert losers == ([overruled] if overruled else [])
        assert ("GPU-team-a/app-0" in gone.reported) == (not jobs)
        assert "GPU-dcgm-0" in gone.reported
