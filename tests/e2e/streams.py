"""Triggers of type external-push, and what can be seen of the streams that KEDA holds open."""

from typing import Any

from tests.e2e import keda_log
from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest
from tests.e2e.product import Scaler
from tests.e2e.resources import ScaledObject


def push(lab: Lab, workload: str, **metadata: str) -> Manifest:
    """Return a trigger of ours whose activity is pushed, beside KEDA's polls."""
    return lab.gpu(workload, **metadata) | {"type": "external-push"}


async def ended(lab: Lab, code: str, at_least: int, *, by: Scaler | None = None) -> None:
    """Wait until this many streams have ended with a status, by the scaler's own count."""
    scaler = by or lab.scaler

    async def counted() -> bool:
        labels = {"method": "StreamIsActive", "code": code}
        return await scaler.counted("keda_gpu_scaler_rpcs_total", **labels) >= at_least

    await lab.wait(counted, f"{at_least} streams have ended with {code}")


async def last_activity(lab: Lab, workload: str) -> Any:  # noqa: ANN401 - a timestamp or nothing
    """Return when KEDA thinks a workload was last active."""
    found: Any = await lab.client.get(ScaledObject, workload, namespace=lab.name)
    return (found.status or {}).get("lastActiveTime")


async def is_told(lab: Lab, workload: str, since: Any, occasion: str) -> Any:  # noqa: ANN401
    """Wait until KEDA knows of a later activity than this one, and return it."""

    async def told() -> bool:
        return bool(await last_activity(lab, workload) != since)

    await lab.wait(told, f"KEDA is told that {workload} is active: {occasion}")
    return await last_activity(lab, workload)


def broken(lab: Lab) -> list[dict[str, Any]]:
    """Return KEDA's complaints about streams that were open and did not end well."""
    complaints = [one for one in keda_log.errors(lab) if one["msg"] == keda_log.STREAM_FAILED]
    return [one for one in complaints if "while dialing" not in one["error"]]
