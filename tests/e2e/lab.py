"""One scenario's corner of the cluster: a namespace, GPU nodes, GPUs, Prometheus and a scaler.

    async def test_…(lab: Lab) -> None:
        await lab.deploy("bert", replicas=1)
        await lab.autoscale("bert", lab.gpu("bert", threshold="70"))
        await lab.offer("bert", 230)
        await lab.reaches("bert", 4)

Labs share the control plane and KEDA and nothing else, so that several scenarios run at once in
one cluster and each may break its own parts.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightkube
from lightkube import codecs
from lightkube.resources.apps_v1 import Deployment
from lightkube.types import PatchType

from testbed.cluster import manifests
from testbed.cluster.resources import ScaledObject
from testbed.cluster.timeline import Timeline
from testbed.processes import until
from testbed.prometheus import PrometheusServer
from tests.e2e.product import Scaler
from tests.e2e.relay import Relay
from tests.e2e.simulator import Simulator

PATIENCE_SECONDS = 180.0
"""The limit of every wait. It is no claim: events take seconds on an idle machine, and longer on a
busy one. Where a time is the claim, a scenario proves it by an order of events: by what has
happened before, or by what cannot happen until long after this limit."""
POLLING_SECONDS = 1
COOLDOWN_SECONDS = 6
INITIAL_COOLDOWN_SECONDS = 10
"""The first poll of a ScaledObject fails where the source has not shown a pod yet, and KEDA 2.21
can take that for idleness. Pods that run before KEDA comes are not ended by it for so long."""
STABILIZATION_SECONDS = 4
SHORT_TIMES = {"window": "4s", "activationWindow": "4s", "warmup": "4s"}
"""In every trigger unless the scenario says otherwise, in the proportions of the defaults."""


@dataclass(slots=True)
class Lab:
    """What a scenario acts on, and what it sees."""

    name: str
    kubeconfig: Path
    directory: Path
    client: lightkube.AsyncClient
    timeline: Timeline
    simulator: Simulator
    prometheus: PrometheusServer
    exporters: Mapping[str, Relay]
    """The relay in front of each node's exporter, which Prometheus scrapes."""
    door: Relay
    """Between the scaler and Prometheus."""
    scaler: Scaler

    async def deploy(
        self,
        name: str,
        *,
        kind: str = "Deployment",
        replicas: int = 0,
        gpus: int = 1,
        load: float = 0,
        loading_percent: float = 0,
        startup_seconds: float = 0,
        strategy: Mapping[str, Any] | None = None,
        **annotations: str,
    ) -> None:
        await self.simulator.change(name, load=load, loading_percent=loading_percent)
        await self.apply(
            manifests.workload(
                kind,
                self.name,
                name,
                replicas=replicas,
                gpus=gpus,
                annotations={"e2e/startup": f"{startup_seconds}s"}
                | {f"e2e/{key}": value for key, value in annotations.items()},
                strategy=strategy,
            )
        )

    async def autoscale(
        self,
        workload: str,
        *triggers: manifests.Manifest,
        min_replicas: int = 1,
        max_replicas: int = 12,
        **fields: Any,
    ) -> None:
        """Create a ScaledObject of the workload's name, with short times."""
        times = {
            "polling_seconds": POLLING_SECONDS,
            "cooldown_seconds": COOLDOWN_SECONDS,
            "initialCooldownPeriod": INITIAL_COOLDOWN_SECONDS,
            "stabilization_seconds": STABILIZATION_SECONDS,
        }
        await self.apply(
            manifests.scaled_object(
                self.name,
                workload,
                triggers,
                min_replicas=min_replicas,
                max_replicas=max_replicas,
                **(times | fields),
            )
        )

    def gpu(self, workload: str, **metadata: str) -> manifests.Manifest:
        """Return a trigger of ours, on KEDA's default metric type."""
        given = {"workload": workload, "threshold": "70", **SHORT_TIMES, **metadata}
        address = {"scalerAddress": self.scaler.address}
        return {"type": "external", "metadata": address | given}

    def router(self, workload: str) -> manifests.Manifest:
        """Return KEDA's own prometheus trigger on what is offered to a workload: it wakes only."""
        # A threshold this large never decides the number of replicas: the GPUs do.
        return self.keda_prometheus(self.offered(workload), threshold="1000000")

    def keda_prometheus(self, query: str, **metadata: str) -> manifests.Manifest:
        given = {"serverAddress": self.prometheus.url, "query": query, **metadata}
        return {"type": "prometheus", "metadata": given}

    async def offer(self, workload: str, percent: float) -> None:
        """Offer a load to a workload, in percent of one GPU."""
        self.timeline.note(f"{workload} is offered {percent:g} %")
        await self.simulator.change(workload, load=percent)

    async def apply(self, manifest: manifests.Manifest) -> None:
        await self.client.apply(codecs.from_dict(manifest), force=True)

    async def patch(self, workload: str, **spec: Any) -> None:
        await self.client.patch(
            ScaledObject, workload, {"spec": spec}, namespace=self.name, patch_type=PatchType.MERGE
        )

    async def roll_out(self, workload: str) -> float:
        """Give a Deployment another template, and wait for its pods; return when that began."""
        self.timeline.note(f"{workload}'s template is another one")
        began = self.timeline.now_seconds
        change = {"spec": {"template": {"metadata": {"annotations": {"e2e/version": "2"}}}}}
        await self.client.patch(
            Deployment, workload, change, namespace=self.name, patch_type=PatchType.MERGE
        )

        def rolled_out() -> bool:
            seen = self.timeline.path(workload, "rolled out", began)
            return False in seen and seen[-1] is True

        await self.wait(rolled_out, f"{workload} is rolled out")
        return began

    async def annotate(self, workload: str, **annotations: str | None) -> None:
        """Annotate a ScaledObject for KEDA; _ stands for -, and None takes an annotation away."""
        named = {
            f"autoscaling.keda.sh/{key.replace('_', '-')}": value
            for key, value in annotations.items()
        }
        patch = {"metadata": {"annotations": named}}
        await self.client.patch(
            ScaledObject, workload, patch, namespace=self.name, patch_type=PatchType.MERGE
        )

    def decisions(self, workload: str) -> list[dict[str, Any]]:
        made = self.scaler.events("decision.made")
        return [each for each in made if each["scaled_object"] == workload]

    async def is_known(self, workload: str) -> None:
        """Wait until the source can tell how many pods a Deployment has, also that it has none.

        Until then a poll about it fails. With exporters alone that takes two minutes from the
        source's beginning; kube-state-metrics counts at once.
        """
        counted = f'kube_deployment_spec_replicas{{deployment="{workload}"}} offset 6s'
        await self.prometheus.wait_for(f"{counted} or up offset 126s", PATIENCE_SECONDS)

    def offered(self, name: str) -> str:
        """Return the PromQL for what is offered under a name, in percent of one GPU.

        The router in front of the workloads shows it, also where no pod is. A name without a
        workload stands for any other sign of work: a queue, a cron job, a gateway.
        """
        labels = f'namespace="{self.name}",workload="{name}"'
        return f"simulator_router_offered_load_percent{{{labels}}}"

    async def offers_nothing(self, name: str) -> str:
        """Return the PromQL for what is offered under a name, once the router shows that as 0."""
        await self.offer(name, 0)
        query = self.offered(name)
        await self.prometheus.wait_for(query)
        return query

    async def becomes(self, workload: str, state: str) -> None:
        await self.wait(
            lambda: [made["state"] for made in self.decisions(workload)][-1:] == [state],
            f"{workload} is {state}",
        )

    def replicas(self, workload: str) -> int | None:
        seen = self.timeline.last(workload, "replicas")
        assert seen is None or isinstance(seen, int)
        return seen

    def path(self, workload: str, since_seconds: float = 0) -> list[int]:
        """Return every number of desired replicas so far, in order."""
        seen = self.timeline.path(workload, "replicas", since_seconds)
        return [each for each in seen if isinstance(each, int)]

    async def reaches(self, workload: str, replicas: int) -> None:
        """Wait until a workload has this many replicas desired and Ready."""

        def reached() -> bool:
            ready = self.timeline.last(workload, "ready")
            return self.replicas(workload) == replicas == ready

        await self.wait(reached, f"{workload} has {replicas} replicas")

    async def shows(self, workload: str, aspect: str, beginning: str) -> None:
        await self.wait(
            lambda: str(self.timeline.last(workload, aspect)).startswith(beginning),
            f"{aspect} of {workload} is {beginning}",
        )

    async def stays(self, workload: str, *allowed: int, for_seconds: float) -> None:
        """Watch a workload for a while: its replicas are never anything but these."""
        began = self.timeline.now_seconds

        def over() -> bool:
            seen = set(self.path(workload, began))
            assert seen <= set(allowed), f"{workload} had {seen}, not only {allowed}"
            return self.timeline.now_seconds >= began + for_seconds

        await self.wait(over, "time goes by")

    async def wait(
        self,
        condition: Callable[[], bool | Awaitable[bool]],
        claim: str,
    ) -> None:
        """Wait for a condition; a failure shows the scenario's whole timeline."""

        async def holds() -> bool:
            found = condition()
            return found if isinstance(found, bool) else await found

        try:
            await until(holds, PATIENCE_SECONDS, claim)
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"{error}\n{self.story()}") from error

    def story(self) -> str:
        return f"{self.timeline}\n--- scaler\n{self.scaler.tail()}"
