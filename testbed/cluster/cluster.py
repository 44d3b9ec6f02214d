"""A Kubernetes cluster with KEDA: real programs, no container engine, up in seconds.

    cluster = Cluster.create(tmp_path)
    cluster.start()
    ...                                # any Kubernetes client, with cluster.kubeconfig
    cluster.stop()

It knows nothing of GPUs, of Prometheus or of the scaler. Nodes are objects that KWOK keeps alive,
pods have no containers; with `runs_pods` there are also nodes on which pods of our image are
processes, and a network that leads to Services by their names, for KEDA too. Every
process writes to a log of its own in the cluster's directory.
"""

import contextlib
import json
import re
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import lightkube
from lightkube import codecs
from lightkube.resources.apiregistration_v1 import APIService

from testbed.cluster.certificates import Certificates
from testbed.cluster.control_plane import ControlPlane
from testbed.cluster.keda import Keda, resource_definitions
from testbed.processes import Program, free_port
from testbed.programs import ROOT

READY_WITHIN_SECONDS = 90.0
"""Seconds on an idle machine; a busy one with two cores takes a while."""
_TOKEN = "e2e"
_LOOK_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class Cluster:
    """Every process of one cluster, by name, and how to reach it."""

    directory: Path
    keda: Keda
    _plane: ControlPlane
    network_port: int | None = None
    """Of the proxy that leads to Services, where pods of our image run."""
    programs: dict[str, Program] = field(default_factory=dict)

    @classmethod
    def create(cls, directory: Path, *, runs_pods: bool = False) -> "Cluster":
        """Plan a cluster with its data and logs in a directory that exists."""
        certificates = Certificates.write(directory / "certificates")
        plane = ControlPlane(directory, certificates)
        network_port = free_port() if runs_pods else None
        proxy = f"http://127.0.0.1:{network_port}" if network_port else None
        keda = Keda(certificates, plane.kubeconfig, proxy)
        return cls(directory, keda, plane, network_port)

    @classmethod
    @contextlib.contextmanager
    def running(cls, directory: Path, *, runs_pods: bool = False) -> Iterator["Cluster"]:
        """Run one until the block ends."""
        cluster = cls.create(directory, runs_pods=runs_pods)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()

    @property
    def kubeconfig(self) -> Path:
        return self._plane.kubeconfig

    def start(self) -> None:
        """Start everything, and return when KEDA serves the external metrics API."""
        try:
            self._start_control_plane()
            self._start_keda()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process, the last one started first."""
        for program in reversed(self.programs.values()):
            program.stop() if program.name == "etcd" else program.kill()

    def versions(self) -> tuple[str, str]:
        """Return the versions of the KEDA and the Kubernetes that run, as they say themselves."""
        kubernetes = self._get("/version").json()["gitVersion"]
        said = httpx2.get(self.keda.metrics_url, trust_env=False).text
        (keda,) = re.findall(r'^keda_build_info\{.*\bversion="([^"]+)"', said, re.MULTILINE)
        return str(keda), str(kubernetes).removeprefix("v")

    def logs(self) -> str:
        return "\n".join(f"--- {each.name}\n{each.tail()}" for each in self.programs.values())

    def _start_control_plane(self) -> None:
        self._write_access()
        self._run("etcd", self._plane.etcd())
        self._run("kube-apiserver", self._plane.api_server())
        self._until(self._api_is_ready, "the API server is ready")
        self._run("kube-controller-manager", self._plane.controller_manager())
        self._run("kube-scheduler", self._plane.scheduler())
        self._run("kwok", self._plane.kwok())
        if self.network_port:
            told = map(str, (self.directory, self.network_port, free_port()))
            words = [sys.executable, "-m", "testbed.cluster.kubelet", *told]
            self._run("kubelet", words, {"PYTHONPATH": str(ROOT)})

    def _start_keda(self) -> None:
        self._apply(resource_definitions())
        self._until(self._keda_is_defined, "KEDA's resources are served")
        self._apply(json.dumps({"kind": "List", "items": self.keda.objects()}))
        self._run("keda-operator", self.keda.operator(), self.keda.environment())
        self._run("keda-adapter", self.keda.adapter(), self.keda.environment())
        if webhooks := self.keda.webhooks():
            self._run("keda-webhooks", webhooks, self.keda.environment())
        self._until(self._metrics_are_served, "the external metrics API is available")

    def _run(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> None:
        program = Program(name, command, self.directory / f"{name}.log", environment or {})
        self.programs[name] = program
        program.start()

    def _until(self, condition: Callable[[], bool], claim: str) -> None:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while not condition():
            ended = [each.name for each in self.programs.values() if not each.running]
            if ended or time.monotonic() > deadline:
                message = f"the cluster does not start: waited until {claim}; ended: {ended}"
                raise RuntimeError(f"{message}\n{self.logs()}")
            time.sleep(_LOOK_EVERY_SECONDS)

    def _api_is_ready(self) -> bool:
        """Tell whether it is ready: until then the other programs wait, and give up after 10 s."""
        with contextlib.suppress(httpx2.TransportError):
            return self._get("/readyz").is_success
        return False

    def _keda_is_defined(self) -> bool:
        """Tell whether KEDA's webhooks find its resources: they look once, and end without them."""
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        return '"kind":"ScaledObject"' in self._get("/apis", accept=accept).text

    def _get(self, path: str, **headers: str) -> httpx2.Response:
        url = f"https://127.0.0.1:{self._plane.api_port}{path}"
        trust = ssl.create_default_context(cafile=self._plane.certificates.authority)
        identified = {"Authorization": f"Bearer {_TOKEN}"} | headers
        return httpx2.get(url, headers=identified, verify=trust, trust_env=False)

    def _metrics_are_served(self) -> bool:
        with self._bootstrap() as client:
            service = client.get(APIService, "v1beta1.external.metrics.k8s.io")
        conditions = (service.status and service.status.conditions) or []
        return any(
            condition.type == "Available" and condition.status == "True" for condition in conditions
        )

    def _apply(self, manifests: str) -> None:
        with self._bootstrap() as client:
            for manifest in codecs.load_all_yaml(manifests, create_resources_for_crds=True):
                client.apply(manifest, force=True)

    def _bootstrap(self) -> contextlib.closing[lightkube.Client]:
        known = lightkube.KubeConfig.from_file(self.kubeconfig)
        return contextlib.closing(lightkube.Client(known, field_manager="e2e", trust_env=False))

    def _write_access(self) -> None:
        """Write the accepted tokens for the API server, and the kubeconfig for its clients."""
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{_TOKEN},e2e,e2e,"system:masters"\n')
        server = {
            "server": f"https://127.0.0.1:{self._plane.api_port}",
            "certificate-authority-data": self._plane.certificates.authority_base64(),
        }
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "e2e", "cluster": server}],
                    "users": [{"name": "e2e", "user": {"token": _TOKEN}}],
                    "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
                    "current-context": "e2e",
                }
            )
        )
