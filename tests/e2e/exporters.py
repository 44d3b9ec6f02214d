"""A lab whose GPUs are shown by another exporter, or scraped at another pace; examples on it."""

from collections.abc import Mapping
from typing import Any

from tests.e2e.lab import COOLDOWN_SECONDS, POLLING_SECONDS, SHORT_TIMES, STABILIZATION_SECONDS, Lab
from tests.e2e.test_examples import placed
from tests.repository.test_examples import EXAMPLES, read

PATHS = {path.stem: path for path in EXAMPLES}
JOB = "dcgm-exporter"


async def scrape(lab: Lab, **changes: Any) -> None:  # noqa: ANN401 - fields of a scrape_config
    """Change how Prometheus scrapes the exporters on the lab's nodes."""
    configs = [
        {**each, **changes} if each["job_name"] == JOB else each
        for each in lab.prometheus.scrape_configs
    ]
    await lab.prometheus.reload(configs)


async def show_as(lab: Lab, exporter: str) -> None:
    """Have every node run another exporter, from before the first pod."""
    await scrape(lab, params={"exporter": [exporter]})


async def autoscale_by(
    lab: Lab,
    example: str,
    workload: str = "",
    times: Mapping[str, str] = SHORT_TIMES,
    **metadata: str,
) -> dict[str, str]:
    """Apply an example's ScaledObject, and return the strings of its trigger as applied.

    Args:
        lab: where.
        example: the name of the file.
        workload: what it scales here, where the example has another name.
        times: for the trigger's keys about time that the example leaves out.
        metadata: what is changed of the trigger.
    """
    document = read(PATHS[example])
    name = workload or document["metadata"]["name"]
    here = placed(lab, document, name)
    (trigger,) = here["spec"]["triggers"]
    trigger["metadata"] = {**times, **trigger["metadata"], "workload": name, **metadata}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": STABILIZATION_SECONDS}}
    here["spec"]["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    if here["spec"]["minReplicaCount"] == 0:
        here["spec"] |= {"pollingInterval": POLLING_SECONDS, "cooldownPeriod": COOLDOWN_SECONDS}
    await lab.apply(here)
    return dict(trigger["metadata"])
