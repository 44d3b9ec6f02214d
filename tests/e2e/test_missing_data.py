"""Exporters go away, in each way that they can, or are scraped twice, and come back.

Missing data is never taken for idle: no replica goes because its load, or another one's, is
unknown. Afterwards the load decides again, down to zero.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import evidences
from tests.e2e.lab import Lab
from tests.e2e.relay import Door, Relay
from tests.e2e.under_load import (
    LESS_LOAD,
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    REPLICAS,
    SHORT_MAX_AGE,
    goes_to_zero,
    node_of_some,
    run_under_load,
)

ScrapeConfigs = Sequence[Mapping[str, Any]]
DOORS = {"refuse": Door.SHUT, "hang": Door.JAMMED}


async def _lose(lab: Lab, way: str, nodes: Collection[str]) -> None:
    """Lose the exporters of some nodes: they refuse, they hang, or are not discovered.

    Where their whole job goes, nothing marks their series as ended: Prometheus shows their last
    values, and an `up` of 1, for five minutes more.
    """
    lab.timeline.note(f"the exporters of {', '.join(nodes)} {way}")
    relays = [lab.exporters[node] for node in nodes]
    if way in DOORS:
        for relay in relays:
            await relay.turn(DOORS[way])
        return
    [exporters, *others] = lab.prometheus.scrape_configs
    left = [] if way == "go with their job" else [_without(relays, exporters)]
    await lab.prometheus.reload([*left, *others])


def _without(relays: Iterable[Relay], config: Mapping[str, Any]) -> Mapping[str, Any]:
    lost = {relay.address for relay in relays}
    groups = config["static_configs"]
    kept = [group for group in groups if lost.isdisjoint(group["targets"])]
    return {**config, "static_configs": kept}


async def _bring_back(lab: Lab, configs: ScrapeConfigs) -> None:
    lab.timeline.note("the exporters are back")
    for relay in lab.exporters.values():
        await relay.turn(Door.OPEN)
    await lab.prometheus.reload(configs)


async def _hold_and_go_on(lab: Lab, way: str, nodes: Collection[str], state: str) -> None:
    """Lose exporters for longer than the cooldown while the load falls, and get them back."""
    everything, known = lab.prometheus.scrape_configs, len(lab.decisions("bert"))
    await _lose(lab, way, nodes)
    await lab.becomes("bert", state)
    await lab.offer("bert", LESS_LOAD)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.path("bert") == [REPLICAS], lab.story()
    await _bring_back(lab, everything)
    await lab.reaches("bert", 2)
    assert {made["active"] for made in lab.decisions("bert")[known:]} == {True}, lab.story()
    await goes_to_zero(lab)


@evidences.each_with(
    "way", ["refuse", "are not discovered"], core=("refuse", EvidenceSource.KUBE_STATE_METRICS)
)
async def test_exporters_of_some_pods_that_are_gone_hold_every_replica(lab: Lab, way: str) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    some = await node_of_some(lab)
    await _hold_and_go_on(lab, way, [some], "partial")


@evidences.each_with(
    "way",
    ["hang", "are not discovered", "go with their job"],
    core=("go with their job", EvidenceSource.EXPORTERS),
)
async def test_exporters_that_are_all_gone_hold_every_replica(lab: Lab, way: str) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    await _hold_and_go_on(lab, way, lab.exporters, "unknown")


@evidences.of_all_pods
async def test_pods_that_no_exporter_has_ever_shown_hold_every_replica(lab: Lab) -> None:
    # The scheduler spreads four pods over three nodes: at least one is on this one, and not all.
    silent = lab.exporters[f"{lab.name}-0"]
    await silent.turn(Door.SHUT)
    await lab.deploy("bert", replicas=REPLICAS, load=LOAD)
    await lab.reaches("bert", REPLICAS)
    await lab.autoscale("bert", lab.gpu("bert", **SHORT_MAX_AGE), min_replicas=0)
    # It may still be starting to report: that it is missing is said after more than a minute.
    await lab.becomes("bert", "starting")
    await lab.offer("bert", LESS_LOAD)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.path("bert") == [REPLICAS], lab.story()
    await silent.turn(Door.OPEN)
    await lab.reaches("bert", 2)
    await goes_to_zero(lab)


def _second_service_monitor(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same exporters once more, with target labels as Kubernetes' discovery attaches them."""
    groups = [
        {**group, "labels": group["labels"] | {"namespace": "monitoring", "pod": f"dcgm-{index}"}}
        for index, group in enumerate(config["static_configs"])
    ]
    return {"job_name": "second-service-monitor", "static_configs": groups}


def _second_prometheus(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same series twice, as one API over a pair of Prometheus servers shows them."""
    same_job = {"target_label": "job", "replacement": config["job_name"]}
    replica = {"target_label": "prometheus_replica", "replacement": "b"}
    return {**config, "job_name": "second-prometheus", "relabel_configs": [same_job, replica]}


async def test_gpus_that_are_scraped_several_times_count_once(lab: Lab) -> None:
    await run_under_load(lab)
    [exporters, *others] = lab.prometheus.scrape_configs
    again = [_second_service_monitor(exporters), _second_prometheus(exporters)]
    lab.timeline.note("every exporter is scraped three times")
    await lab.prometheus.reload([exporters, *again, *others])
    await lab.prometheus.wait_for(f"count by (UUID) (DCGM_FI_DEV_GPU_UTIL) == {1 + len(again)}")
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)

    lab.timeline.note("and only once again, by the job that came last")
    gone = [_without(lab.exporters.values(), config) for config in (exporters, again[1])]
    await lab.prometheus.reload([again[0], *gone, *others])
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    values = {made["value"] for made in lab.decisions("bert")}
    assert values <= {LOAD, None}, lab.story()

    await lab.offer("bert", LESS_LOAD)
    await lab.reaches("bert", 2)
