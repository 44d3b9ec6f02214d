"""The made-up workloads that are asked about, their GPUs in a Prometheus, and the right answers.

Each workload is a Deployment of two pods with one GPU each under a constant load, so that its right
answer is known without the code under measurement. Pure, but for the one function that writes.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from testbed.gpus import Gpu, Up, history
from testbed.prometheus import PrometheusServer
from testbed.triggers import reference, request

NAMESPACE = "ml"
METRIC_NAME = "gpu-utilization"
PAST_SECONDS = 600.0
"""More than the window, the warm-up and the activation window of a trigger together."""
GPUS_PER_NODE = 8
_POD_SUFFIXES = ("7b6667bd9-bbbbb", "7b6667bd9-zzzzz")
_LOWEST_PERCENT, _PERCENTS = 10, 83
"""Above the activation threshold and below full replicas, for which more is asked than they show; a
prime number of loads, so that neighbours differ."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger of one ScaledObject on one workload."""

    number: int
    """Which workload it is about."""
    copy: int = 0
    """Several ScaledObjects may be about the same workload."""

    @property
    def workload(self) -> str:
        """The Deployment's name."""
        return f"model-{self.number}"

    @property
    def percent(self) -> float:
        """The load of each of its GPUs."""
        return float(_LOWEST_PERCENT + self.number % _PERCENTS)

    @property
    def value(self) -> float:
        """What GetMetrics has to answer: the sum over the pods."""
        return self.percent * len(_POD_SUFFIXES)

    @property
    def pods(self) -> list[str]:
        """The names of its pods."""
        return [f"{self.workload}-{suffix}" for suffix in _POD_SUFFIXES]

    def reference(self) -> pb.ScaledObjectRef:
        """Return what KEDA sends to identify the trigger's ScaledObject."""
        name = f"{self.workload}-{self.copy}"
        return reference(name, NAMESPACE, workload=self.workload)

    def request(self) -> pb.GetMetricsRequest:
        """Return KEDA's request for its metric."""
        return request(self.reference(), METRIC_NAME)


def triggers(workloads: int, copies: int = 1) -> list[Trigger]:
    """Return the triggers of this many workloads; copies of one are far apart."""
    return [Trigger(number, copy) for copy in range(copies) for number in range(workloads)]


async def fill(prometheus: PrometheusServer, workloads: int, ahead_seconds: float) -> None:
    """Store the GPUs of all workloads, and the health of the nodes they are on.

    Samples reach into the future, so that nothing is written during the measurement;
    queries are about instants and never see a later sample.
    """
    begin = -(PAST_SECONDS + ahead_seconds)
    await prometheus.write(history(time.time() + ahead_seconds, _parts(workloads, begin)))


def _parts(workloads: int, begin: float) -> Iterator[Gpu | Up]:
    pods = [(trigger, pod) for trigger in triggers(workloads) for pod in trigger.pods]
    for index, (trigger, pod) in enumerate(pods):
        exporter = node(index // GPUS_PER_NODE)
        if index % GPUS_PER_NODE == 0:
            yield Up(instance=exporter, begin=begin)
        yield Gpu(pod, trigger.percent, namespace=NAMESPACE, instance=exporter, begin=begin)


def node(number: int) -> str:
    """Return the address of an exporter."""
    return f"10.0.{number // 250}.{number % 250 + 1}:9400"
