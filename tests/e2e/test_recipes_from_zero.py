"""Two of the recipes from zero, at work: with their own queries, and what a Prometheus scrapes."""

import json
from pathlib import Path

from tests.e2e import streams
from tests.e2e.lab import Lab
from tests.repository.test_examples import EXAMPLES, ours, read

PATHS = {path.stem: path for path in EXAMPLES}


def demand(lab: Lab, example: str) -> dict[str, str]:
    """Return the keys about demand of an example, with the lab's labels and times."""
    (trigger,) = ours(read(PATHS[example]))
    keys = {key: text for key, text in trigger["metadata"].items() if key.startswith("demand")}
    here = keys["demandQuery"].replace("exported_", "").replace("inference", lab.name)
    return keys | {"demandQuery": here.replace("[5m]", "[5s]")}


async def test_the_second_pool_carries_what_the_first_cannot_and_then_stops(lab: Lab) -> None:
    await lab.deploy("llama-reserved", replicas=2, load=150)
    await lab.deploy("llama-spot")
    await lab.reaches("llama-reserved", 2)
    trigger = streams.push(lab, "llama-spot", **demand(lab, "overflow"))
    await lab.autoscale("llama-spot", trigger, min_replicas=0)
    # Two GPUs at 75 %: the first pool is busy, and not full.
    await lab.stays("llama-spot", 0, for_seconds=8)

    await lab.offer("llama-reserved", 260)
    # 200 % show, and 160 are the first pool's own: 40 over 80 is one replica.
    await lab.reaches("llama-spot", 1)

    lab.timeline.note("the router spreads what there is, and less of it comes")
    await lab.offer("llama-reserved", 140)
    await lab.offer("llama-spot", 60)
    # 200 % together are 40 too much for the first pool alone, whose average is 70 now.
    await lab.stays("llama-spot", 1, for_seconds=12)

    await lab.offer("llama-spot", 0)
    await lab.reaches("llama-spot", 0)
    assert lab.path("llama-spot") == [0, 1, 0], lab.story()


async def test_an_alert_of_prometheus_wakes_a_workload_without_a_webhook(
    lab: Lab, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yml"
    offered = f'simulator_router_offered_load_percent{{workload="bert",namespace="{lab.name}"}}'
    rule = {"alert": "BertIsWanted", "expr": f"sum by (namespace) ({offered}) > 10"}
    rules.write_text(json.dumps({"groups": [{"name": "bert", "rules": [rule]}]}))
    lab.prometheus.sections = {"rule_files": [str(rules)]}
    await lab.prometheus.reload(lab.prometheus.scrape_configs)
    await lab.deploy("bert")
    trigger = streams.push(lab, "bert", **demand(lab, "alert"))
    await lab.autoscale("bert", trigger, min_replicas=0)
    await lab.stays("bert", 0, for_seconds=5)

    await lab.offer("bert", 150)
    # Two at 75 % are within the HPA's tolerance: the alert wakes, and the GPUs say how many.
    await lab.reaches("bert", 2)

    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)
