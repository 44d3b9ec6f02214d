"""GPU series as dcgm-exporter and Prometheus store them, for a Prometheus that tests write to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from testbed.series import STALE, Series, stored

INTERVAL_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU series of one pod, from one scrape target, over a span of time."""

    pod: str
    value: float
    namespace: str = "ml"
    uuid: str = ""
    metric: str = "DCGM_FI_DEV_GPU_UTIL"
    instance: str = "10.0.0.1:9400"
    job: str = "dcgm-exporter"
    convention: str = "exported"
    extra: Mapping[str, str] = field(default_factory=dict)
    begin: float = -900
    end: float | None = None
    """Seconds relative to the end of the history; an end is marked stale, None is never gone."""

    def series(self, now: float) -> Series:
        times = _times(now, self.begin, 0 if self.end is None else self.end)
        samples: list[tuple[float, float | None]] = [(time, self.value) for time in times]
        if self.end is not None:
            samples.append((times[-1] + INTERVAL_SECONDS, STALE))
        return Series(self.metric, self._labels(), samples)

    def _labels(self) -> dict[str, str]:
        target = {"job": self.job, "instance": self.instance}
        exporter = {"pod": f"exporter-{self.instance}", "namespace": "gpu-operator"}
        gpu = {"UUID": self.uuid or f"GPU-{self.pod}", "gpu": "0"}
        owner = {
            "exported": stored({"pod": self.pod, "namespace": self.namespace}, exporter),
            "plain": {"pod": self.pod, "namespace": self.namespace},
            "old": {"pod_name": self.pod, "pod_namespace": self.namespace, **exporter},
            "idle": exporter,
        }[self.convention]
        if self.convention == "old":
            gpu = {"uuid": gpu["UUID"], "gpu": "0"}
        return {**target, **owner, **gpu, **self.extra}


@dataclass(frozen=True, slots=True)
class Up:
    """The health of one scrape target; down from `down`, out of discovery from `gone`."""

    instance: str = "10.0.0.1:9400"
    job: str = "dcgm-exporter"
    begin: float = -900
    down: float | None = None
    gone: float | None = None

    def series(self, now: float) -> Series:
        end = 0 if self.gone is None else self.gone
        samples: list[tuple[float, float | None]] = [
            (time, 1.0 if self.down is None or time < now + self.down else 0.0)
            for time in _times(now, self.begin, end)
        ]
        if self.gone is not None:
            samples.append((samples[-1][0] + INTERVAL_SECONDS, STALE))
        exporter = {"pod": f"exporter-{self.instance}", "namespace": "gpu-operator"}
        return Series("up", {"job": self.job, "instance": self.instance, **exporter}, samples)


def mig(number: int) -> dict[str, str]:
    return {"GPU_I_ID": str(number), "GPU_I_PROFILE": "1g.10gb"}


def history(now: float, parts: Iterable[Gpu | Up]) -> list[Series]:
    """Return the series of all parts, ending at `now`."""
    return [part.series(now) for part in parts]


def _times(now: float, begin: float, end: float) -> list[float]:
    first = now + begin
    return [first + n * INTERVAL_SECONDS for n in range(int((end - begin) // INTERVAL_SECONDS) + 1)]
