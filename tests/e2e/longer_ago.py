"""A workload that has already run for a while: its past is stored instead of waited for."""

import datetime as dt
import time
from collections.abc import Collection

from lightkube.models.core_v1 import PodCondition
from lightkube.resources.core_v1 import Pod
from lightkube.types import PatchType

from tests.e2e.lab import Lab
from tests.support.series import Series

_SCRAPED_EVERY_SECONDS = 5
_GPU = '{{__name__=~"DCGM_FI_.*",namespace="{namespace}"}}'


async def ready_since(lab: Lab, seconds: float, *, unseen: Collection[str] = ()) -> None:
    """Make every pod of a lab Ready for this long, its GPUs at their present values throughout.

    Args:
        lab: the lab.
        seconds: how long.
        unseen: the nodes that have no exporter.
    """
    began = time.time() - seconds
    await lab.wait(lambda: _all_are_shown(lab, unseen), "every pod shows its GPUs")
    await lab.prometheus.write([await _earlier(lab, each, began) for each in await _shown(lab)])
    async for pod in lab.client.list(Pod, namespace=lab.name):
        await _backdate(lab, pod, dt.datetime.fromtimestamp(began, dt.UTC))


async def _all_are_shown(lab: Lab, unseen: Collection[str]) -> bool:
    """Tell whether every pod has been scraped: without a series there is no past to store."""
    pods = {
        pod.metadata.name  # type: ignore[union-attr] # a listed object has it
        async for pod in lab.client.list(Pod, namespace=lab.name)
        if pod.spec is not None and pod.spec.nodeName not in unseen
    }
    return bool(pods) and pods <= {each.get("pod") for each in await _shown(lab)}


async def _shown(lab: Lab) -> list[dict[str, str]]:
    """Return the labels of everything that is shown of the pods' GPUs."""
    found = await lab.prometheus.query(_GPU.format(namespace=lab.name))
    return [each["metric"] for each in found]


async def _earlier(lab: Lab, labels: dict[str, str], began: float) -> Series:
    name = labels["__name__"]
    others = {key: text for key, text in labels.items() if key != "__name__"}
    matchers = ",".join(f'{key}="{text}"' for key, text in others.items())
    [now] = await lab.prometheus.query(f"{name}{{{matchers}}}")
    at, value = now["value"]
    times = range(int(began), int(at), _SCRAPED_EVERY_SECONDS)
    return Series(name, others, [(float(each), float(value)) for each in times])


async def _backdate(lab: Lab, pod: Pod, since: dt.datetime) -> None:
    assert pod.metadata is not None
    assert pod.metadata.name is not None
    condition = PodCondition(type="Ready", status="True", lastTransitionTime=since)
    change = {"status": {"conditions": [condition.to_dict()]}}
    await lab.client.patch(
        Pod.Status,
        pod.metadata.name,
        change,
        namespace=lab.name,
        patch_type=PatchType.STRATEGIC,
    )
