"""The life of one pod on a node: prepared, run, reported, and taken away."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lightkube import ApiError
from lightkube.resources.core_v1 import Pod
from lightkube.types import PatchType

from tests.e2e.kubelet import status
from tests.e2e.kubelet.container import Command, Container
from tests.e2e.kubelet.files import Manifest, NotReadyYetError
from tests.e2e.kubelet.setup import House, Setup

_LOOK_EVERY_SECONDS = 1.0
"""How soon a changed ConfigMap or Secret is in the files: Kubernetes takes up to two minutes."""
_NOT_FOUND = 404
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Life:
    """One pod that was placed on a node here."""

    house: House
    pod: Manifest
    """As it was when it was placed, with the address that it has been given."""
    _report: status.Report = field(init=False)
    _containers: list[Container] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _deleted: asyncio.Event = field(default_factory=asyncio.Event)
    _grace_seconds: float = 0

    def __post_init__(self) -> None:
        """Begin to report."""
        self._report = status.Report(self.pod["status"]["podIP"])

    @property
    def name(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.pod["metadata"]["namespace"], self.pod["metadata"]["name"]

    def delete(self, grace_seconds: float) -> None:
        """Note that the pod is being deleted."""
        self._grace_seconds = grace_seconds
        self._deleted.set()

    async def run(self) -> None:
        """Live until the pod is gone from the API."""
        setup = Setup(self.house, self.pod)
        reporting = asyncio.create_task(self._report_changes())
        try:
            await self._live(setup)
            await self._tell()
            await self._deleted.wait()
            await self._remove()
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)

    async def _live(self, setup: Setup) -> None:
        commands = await self._prepared(setup)
        if commands is None:
            return
        specs = self.pod["spec"]["containers"]
        policy = self.pod["spec"].get("restartPolicy", "Always")
        self._containers = [
            Container(spec, command, policy, self._logs(spec["name"]), self._changed.set)
            for spec, command in zip(specs, commands, strict=True)
        ]
        files = asyncio.create_task(self._keep_files(setup))
        runs = asyncio.gather(*(container.run() for container in self._containers))
        ends = asyncio.create_task(self._stop_when_deleted())
        try:
            await runs
        finally:
            files.cancel()
            ends.cancel()
            await asyncio.gather(files, ends, return_exceptions=True)
            for spec in specs:
                running_path(self.house.directory, *self.name, spec["name"]).unlink(missing_ok=True)

    async def _prepared(self, setup: Setup) -> Sequence[Command | None] | None:
        """Return what each container runs, once all it uses exists; None if deleted before."""
        while not self._deleted.is_set():
            try:
                await setup.write_files()
                commands = [await setup.command(each) for each in self.pod["spec"]["containers"]]
            except NotReadyYetError as problem:
                self._report.problem = problem.reason, str(problem)
                self._changed.set()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._deleted.wait(), _LOOK_EVERY_SECONDS)
            else:
                self._report.problem = None
                self._forget_the_last_one()
                self._write_down(commands)
                return commands
        return None

    async def _keep_files(self, setup: Setup) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
            try:
                await setup.write_files()
            except NotReadyYetError as problem:
                log.warning("%s keeps its files: %s", self.name, problem)

    async def _stop_when_deleted(self) -> None:
        await self._deleted.wait()
        log.info("%s is deleted, within %s s", self.name, self._grace_seconds)
        await asyncio.gather(*(each.stop(self._grace_seconds) for each in self._containers))

    async def _report_changes(self) -> None:
        while True:
            self._changed.clear()
            await self._tell()
            await self._changed.wait()

    async def _tell(self) -> None:
        namespace, name = self.name
        change = {"status": self._report.of(self.pod, self._containers)}
        with contextlib.suppress(ApiError):  # the pod may have been deleted by force
            await self.house.client.patch(
                Pod.Status, name, change, namespace=namespace, patch_type=PatchType.MERGE
            )

    async def _remove(self) -> None:
        namespace, name = self.name
        try:
            await self.house.client.delete(Pod, name, namespace=namespace, grace_period=0)
        except ApiError as error:
            if error.status.code != _NOT_FOUND:
                raise

    def _logs(self, container: str) -> Callable[[int], Path]:
        return lambda restarts: log_path(self.house.directory, *self.name, container, restarts)

    def _forget_the_last_one(self) -> None:
        """Take away the output of an earlier pod of the same name."""
        first = log_path(self.house.directory, *self.name, "*", 0)
        for file in first.parent.glob(first.stem.removesuffix("0") + "*.log"):
            file.unlink()

    def _write_down(self, commands: Sequence[Command | None]) -> None:
        """Say how each container runs, for `kubectl exec` and `port-forward`."""
        for spec, command in zip(self.pod["spec"]["containers"], commands, strict=True):
            if command:
                path = running_path(self.house.directory, *self.name, spec["name"])
                path.write_text(json.dumps({"env": dict(command.environment)}))


def log_path(directory: Path, namespace: str, pod: str, container: str, restarts: int) -> Path:
    """Return the file with a container's output between two of its restarts."""
    return directory / "logs" / f"{namespace}_{pod}_{container}_{restarts}.log"


def running_path(directory: Path, namespace: str, pod: str, container: str) -> Path:
    """Return the file that says how a container runs."""
    return directory / "running" / f"{namespace}_{pod}_{container}.json"
