"""A cluster with every problem that the page on troubleshooting describes.

All are started at once, so that a reader waits for each only once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tests.e2e.keda import NAMESPACE
from tests.e2e.lab import Lab
from tests.e2e.reader import Reader, Scene, prints
from tests.e2e.relay import Door
from tests.e2e.release import Release

TALL, LOW = 130.0, 40.0
"""Loads for two replicas and for one, at a threshold of 70."""
_SOURCE = r'"source\.\(up\|down\)'
_LOG = f"kubectl logs -n {NAMESPACE} -l app.kubernetes.io/name=keda-gpu-scaler --tail=-1"
_OPERATOR = "keda-operator"


@dataclass(slots=True)
class Troubles:
    """One ScaledObject for each of them, all called `bert` on the page."""

    lab: Lab
    release: Release
    reader: Reader

    @property
    def scenes(self) -> Mapping[str, Scene]:
        """The problems of the page, by its words."""
        return {
            "its pod starts slowly": self._starts_slowly,
            "its trigger names another workload": self._is_another,
            "it is averaged": self._is_averaged,
            "its idle GPU shows five percent": lambda: self._is("bert-c", "busiest GPU 5 %"),
            "it sleeps": lambda: self._is("bert-d", "has no replicas"),
            "its load comes and goes": self._swings,
            "it has a wrong key": lambda: self._is("bert-f", "unknown key"),
            "KEDA speaks TLS and the scaler does not": lambda: self._about("bert-g"),
            "Prometheus is down": self._prometheus_is_down,
            "Prometheus is back": self._prometheus_is_back,
            "it was scaled in": self._is_scaled_in,
        }

    async def begin(self) -> None:
        """Start the problems that take time to develop."""
        await asyncio.gather(*(begin() for begin in self._beginnings()))

    def _beginnings(self) -> list[Callable[[], Awaitable[None]]]:
        gpu = self.release.gpu
        demand = {"type": "external-push"}
        return [
            lambda: self._scaled("bert-a", gpu("bert-a"), load=0, startup_seconds=600),
            lambda: self._scaled("bert-b", gpu("bert-b", aggregation="average"), load=250),
            lambda: self._scaled("bert-c", gpu("bert-c"), load=5, least=0),
            lambda: self._scaled("bert-d", gpu("bert-d") | demand, load=0, least=0, replicas=0),
            lambda: self._scaled("bert-e", gpu("bert-e"), load=TALL, stabilization_seconds=2),
            lambda: self._scaled("bert-f", gpu("bert-f", treshold="70"), load=0, least=0),
            lambda: self._scaled("bert-g", gpu("bert-g", enableTLS="true"), load=0),
            lambda: self._scaled("bert-h", gpu("bert-h"), load=60),
            lambda: self._scaled("bert-i", gpu("bert-i"), load=180, replicas=3),
            lambda: self._scaled("bert-j", gpu("bart"), load=60),
            lambda: self.lab.offer("bert", 5),
        ]

    async def _scaled(  # noqa: PLR0913 - each argument is one fact of a workload
        self,
        name: str,
        trigger: Mapping[str, object],
        *,
        load: float,
        least: int = 1,
        replicas: int = 1,
        startup_seconds: float = 0,
        **fields: int,
    ) -> None:
        await self.lab.deploy(name, replicas=replicas, load=load, startup_seconds=startup_seconds)
        await self.lab.autoscale(name, dict(trigger), min_replicas=least, max_replicas=4, **fields)

    async def _about(self, name: str) -> None:
        """Let the reader's next commands be about this one."""
        self.reader.names = {self.lab.name: "inference", name: "bert"}
        await self.reader.terminal.type(
            f"NAMESPACE={self.lab.name} NAME={name} PROMETHEUS={self.lab.prometheus.url}", 5
        )

    async def _is(self, name: str, words: str) -> None:
        await self._said(f'"{name}"', words)
        await self._about(name)

    async def _starts_slowly(self) -> None:
        await self._said('"bert-a"', "not Ready yet")
        conditions = f"kubectl get hpa -n {self.lab.name} keda-hpa-bert-a -o yaml"
        await self._shown(conditions, "no matching metrics found")
        await self._about("bert-a")

    async def _is_another(self) -> None:
        await self._said('"bert-j"', "bart")
        await self._about("bert-j")

    async def _is_averaged(self) -> None:
        await self._said('"bert-b"', "100 % over 2 replicas")
        await self._shown(f"kubectl get hpa -n {self.lab.name} keda-hpa-bert-b", "50/70")
        await self._about("bert-b")

    async def _said(self, about: str, words: str) -> None:
        """Wait until the last that the log says about something has these words."""
        await self._shown(f"{_LOG} | sort | grep '{about}' | tail -n 1", words)

    async def _shown(self, command: str, words: str) -> None:
        await prints(self.lab, self.release.shell, command, words)

    async def _swings(self) -> None:
        for load, replicas in ((TALL, 2), (LOW, 1), (TALL, 2)):
            await self.lab.offer("bert-e", load)
            await self.lab.reaches("bert-e", replicas)
        await self._about("bert-e")

    async def _prometheus_is_down(self) -> None:
        await self._said('"bert-h"', "asks for 1 replica")
        await self.lab.door.turn(Door.SHUT)
        await self._said(_SOURCE, "source.down")
        await self._about("bert-h")

    async def _prometheus_is_back(self) -> None:
        await self.lab.door.turn(Door.OPEN)
        await self._said(_SOURCE, "source.up")

    async def _is_scaled_in(self) -> None:
        await self.lab.reaches("bert-i", 3)
        await self.lab.offer("bert-i", 60)
        await self.lab.reaches("bert-i", 1)
        await self._about("bert-i")


async def show_operator_log(lab: Lab, release: Release, path: str, directory: str) -> None:
    """Let `kubectl logs` show what KEDA's operator writes, which runs beside the cluster."""
    container = {"name": _OPERATOR, "image": _OPERATOR}
    template = {
        "metadata": {"labels": {"app": _OPERATOR}},
        "spec": {"nodeSelector": {"e2e/processes": "true"}, "containers": [container]},
    }
    selector = {"matchLabels": {"app": _OPERATOR}}
    await lab.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": _OPERATOR, "namespace": NAMESPACE},
            "spec": {"replicas": 1, "selector": selector, "template": template},
        }
    )
    shell = release.shell
    await shell.expect(f"kubectl rollout status -n {NAMESPACE} deployment/{_OPERATOR}")
    pods = f"kubectl get pods -n {NAMESPACE} -l app={_OPERATOR} -o name"
    pod = (await shell.expect(pods)).strip().removeprefix("pod/")
    await shell.expect(f"ln -s {path} {directory}/logs/{NAMESPACE}_{pod}_{_OPERATOR}_0.log")
