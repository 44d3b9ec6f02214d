"""One side of a scene as a Prometheus with kube-state-metrics shows it: a source of the scaler.

All is scraped as fast as by default, and nothing arrives late.
"""

from collections.abc import Collection, Iterable

from keda_gpu_scaler.snapshot.evidence import Evidence, PodStatement
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Series, Target
from keda_gpu_scaler.sources.evaluation_times import floored, within
from keda_gpu_scaler.spec.spec import SnapshotQuery
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.workbench.demo.scenes import BERT, Side
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS, STEP_SECONDS

_EXPORTER = Target("dcgm-exporter", "10.0.0.1:9400")
_LIST, _LIST_SECONDS = Target("kube-state-metrics", "10.0.0.2:8080"), 30.0


class SideSource:
    """Samples, evidence and a demand, by the clock of the side."""

    step_seconds, lag_seconds, settled_seconds = float(STEP_SECONDS), 0.0, 0.0
    name = "kube-state-metrics"

    def __init__(self, side: Side) -> None:
        self._side = side

    async def synchronize(self) -> None:
        """Do nothing: its clock is the scaler's."""

    def now(self) -> float:
        return self._side.clock

    def instant(self) -> float:
        return floored(self.now(), STEP_SECONDS)

    async def history(self, _query: SnapshotQuery, _at: float) -> None:
        """Return none: no scene is about pods of an hour ago."""

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        side, instants = self._side, within(at, snapshot_query.span_seconds, STEP_SECONDS)
        series = []
        for pod in side.every_pod:
            shown = [(time, side.value(pod, time)) for time in instants]
            values = {time: value for time, value in shown if value is not None}
            series.append(
                Series(
                    *(BERT.namespace, pod.name, f"GPU-{pod.name}", _EXPORTER),
                    *(tuple(values), tuple(values), tuple(values.values())),
                    averaged=False,
                    shows_free_gpus=True,
                )
            )
        good = {time: time for time in instants if side.number("exporter", time, 1)}
        return Observation(
            instants,
            tuple(gpu for gpu in series if gpu.times),
            {_EXPORTER: good},
            absence_known=True,
            collection_seconds=COLLECT_SECONDS,
        )

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the GPUs of pods that are gone: an exporter that answers shows them without."""
        return GpuReports(frozenset(uuids) if self._side.number("exporter", at, 1) else frozenset())

    async def evidence(self, namespaces: Collection[str], at: float, _now: float) -> Evidence:
        listed_at = floored(at, _LIST_SECONDS)
        pods = {
            (BERT.namespace, pod.name): PodStatement(
                owners=frozenset({Owner("Deployment", pod.workload)}),
                created_at=pod.created,
                ready=pod.works(listed_at),
                ready_at=pod.ready if pod.works(listed_at) else None,
                ended=pod.deleted <= listed_at,
                asks_gpu=True,
            )
            for pod in self._side.every_pod
            if pod.created <= listed_at < pod.gone
        }
        wanted = self._side.wanted(listed_at)
        bert = BERT.namespace, Owner("Deployment", BERT.name)
        return Evidence(
            pods,
            frozenset() if wanted else frozenset({bert}),
            frozenset(namespaces),
            {_LIST: listed_at},
            {_LIST: _LIST_SECONDS},
            wanted={bert: wanted},
        )

    async def number(self, _text: str) -> float:
        return self._side.number("queue", self.now(), 0)
