"""One container of a pod: a process that is started, watched, restarted and stopped."""

import asyncio
import contextlib
import datetime as dt
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.kubelet import probes
from tests.e2e.kubelet.files import Manifest

_LONGEST_PAUSE_SECONDS = 10
"""Between two starts of a container that keeps ending: 5 minutes in Kubernetes, in the end."""
_UNTIL_READY_SECONDS = 0.5
"""Between two probes of a container that is not ready yet, whatever the probe's period is."""
_PROBE_PERIOD_SECONDS = 10
_PROBE_FAILURES = 3
_AFTER_A_SIGNAL = 128


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Command:
    """What a container runs."""

    words: Sequence[str]
    environment: Mapping[str, str]
    host: str
    directory: Path


@dataclass(slots=True)
class Container:
    """One container, whose command is None if it is only pretended to run."""

    spec: Manifest
    command: Command | None
    restart_policy: str
    log: Callable[[int], Path]
    """Where the output goes, after how many restarts."""
    changed: Callable[[], None]
    """Called whenever one of the following changes."""
    ready: bool = False
    restarts: int = 0
    state: Manifest = field(default_factory=lambda: waiting("ContainerCreating"))
    last_state: Manifest = field(default_factory=dict)
    _process: asyncio.subprocess.Process | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def exit_code(self) -> int | None:
        """How it ended; None as long as it runs, or will again."""
        code: int | None = self.state.get("terminated", {}).get("exitCode")
        return code

    async def run(self) -> None:
        """Run it until it has ended and will not be restarted."""
        while True:
            await self._once()
            if self._stopping.is_set() or not self._runs_again():
                return
            self.last_state, self.state = self.state, waiting("CrashLoopBackOff")
            self.restarts += 1
            self.changed()
            with contextlib.suppress(TimeoutError):
                pause = min(2**self.restarts, _LONGEST_PAUSE_SECONDS)
                await asyncio.wait_for(self._stopping.wait(), pause)
                return

    async def stop(self, grace_seconds: float) -> None:
        """Stop it as its pod is deleted: preStop pause, SIGTERM, and end of its grace period."""
        sleep = self.spec.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                if self.command:
                    await asyncio.sleep(sleep.get("seconds", 0))
                self._stopping.set()
                self._signal(signal.SIGTERM)
                if self._process:
                    await self._process.wait()
        self._stopping.set()
        self._signal(signal.SIGKILL)

    def _runs_again(self) -> bool:
        failed = self.exit_code != 0
        return self.restart_policy == "Always" or (self.restart_policy == "OnFailure" and failed)

    def _signal(self, number: int) -> None:
        if self._process and self._process.returncode is None:
            self._process.send_signal(number)

    async def _once(self) -> None:
        began = now()
        self.state = {"running": {"startedAt": began}}
        code = await self._pretend() if self.command is None else await self._live(self.command)
        self.ready = False
        code = code if code >= 0 else _AFTER_A_SIGNAL - code
        ended = {"exitCode": code, "reason": "Error" if code else "Completed"}
        self.state = {"terminated": {**ended, "startedAt": began, "finishedAt": now()}}
        self.changed()

    async def _pretend(self) -> int:
        self.ready = True
        self.changed()
        await self._stopping.wait()
        return 0

    async def _live(self, command: Command) -> int:
        with self.log(self.restarts).open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command.words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(command.environment),
                cwd=command.directory,
            )
        self.changed()
        health = asyncio.create_task(self._watch_health(command))
        try:
            return await self._process.wait()
        finally:
            self._signal(signal.SIGKILL)
            health.cancel()
            await asyncio.gather(health, return_exceptions=True)

    async def _watch_health(self, command: Command) -> None:
        """Probe it for as long as it lives: is it up, is it ready, is it alive."""
        ports = {
            each["name"]: each["containerPort"]
            for each in self.spec.get("ports", [])
            if "name" in each
        }
        target = probes.Target(command.host, ports, command.environment)
        if startup := self.spec.get("startupProbe"):
            await self._is_up(startup, target)
        await asyncio.gather(self._watch_readiness(target), self._watch_liveness(target))

    async def _is_up(self, probe: Manifest, target: probes.Target) -> None:
        """Wait for its first success; without one it is ended after the time the probe allows."""
        allowed = probe.get("initialDelaySeconds", 0) + _period(probe) * _failures_allowed(probe)
        for _ in range(int(allowed / _UNTIL_READY_SECONDS)):
            if await probes.succeeds(probe, target):
                return
            await asyncio.sleep(_UNTIL_READY_SECONDS)
        self._signal(signal.SIGTERM)

    async def _watch_readiness(self, target: probes.Target) -> None:
        probe = self.spec.get("readinessProbe")
        failures = 0
        while True:
            good = probe is None or await probes.succeeds(probe, target)
            failures = 0 if good else failures + 1
            self._set_ready(good or (self.ready and failures < _failures_allowed(probe or {})))
            if probe is None:
                return
            await asyncio.sleep(_period(probe) if self.ready else _UNTIL_READY_SECONDS)

    async def _watch_liveness(self, target: probes.Target) -> None:
        probe = self.spec.get("livenessProbe")
        failures = 0
        await asyncio.sleep((probe or {}).get("initialDelaySeconds", 0))
        while probe is not None:
            await asyncio.sleep(_period(probe))
            if self._stopping.is_set():
                return  # as the kubelet, which does not ask whether a pod that ends is alive
            failures = 0 if await probes.succeeds(probe, target) else failures + 1
            if failures >= _failures_allowed(probe):
                self._signal(signal.SIGTERM)
                return

    def _set_ready(self, ready: bool) -> None:  # noqa: FBT001 - what it sets
        if ready is not self.ready:
            self.ready = ready
            self.changed()


def waiting(reason: str, message: str = "") -> Manifest:
    """Return the state of a container that does not run yet, or not now."""
    found: dict[str, Any] = {"reason": reason}
    return {"waiting": found | ({"message": message} if message else {})}


def _period(probe: Manifest) -> float:
    return float(probe.get("periodSeconds", _PROBE_PERIOD_SECONDS))


def _failures_allowed(probe: Manifest) -> int:
    return int(probe.get("failureThreshold", _PROBE_FAILURES))
