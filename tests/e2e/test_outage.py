"""Prometheus goes away under load, in each way that it can, and comes back.

Replicas that serve are never taken away meanwhile: it is unknown whether they are idle.
"""

from typing import Any

import pytest

from testbed.cluster import generation
from tests.e2e.counts import Counts
from tests.e2e.lab import Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import (
    LESS_LOAD,
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    SHORT_MAX_AGE,
    deploy_under_load,
    follows_more_load,
    goes_to_zero,
    run_under_load,
    the_hpa_has_a_number,
)
from tests.repository.test_docs import ROOT
from tests.repository.test_docs_snippets import pieces


@pytest.mark.core
@pytest.mark.generations
@pytest.mark.parametrize("way", ["stopped", "jammed"])
async def test_prometheus_away_at_load_for_longer_than_the_cooldown_takes_nothing_away(
    lab: Lab, keda_counts: Counts, way: str
) -> None:
    # A poll of KEDA that fails slowly, while its HPA request fails too, counts as "inactive, no
    # error" (the scaler cache is closed under it): only an answer without an error is safe here.
    await run_under_load(lab, **SHORT_MAX_AGE)
    lab.timeline.note(f"Prometheus {way}")
    await (lab.prometheus.stop() if way == "stopped" else lab.door.turn(Door.JAMMED))
    await lab.offer("bert", MORE_LOAD)
    errors = await keda_counts.errors(lab.name, "bert")
    await lab.becomes("bert", "unknown")
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert await keda_counts.errors(lab.name, "bert") == errors, lab.story()
    held = lab.timeline.last("bert", "hpa ScalingActive")
    assert held == "False FailedGetExternalMetric", lab.story()
    assert lab.timeline.last("bert", "keda Ready") == "True ScaledObjectReady", lab.story()

    lab.timeline.note("Prometheus is back")
    await (lab.prometheus.start() if way == "stopped" else lab.door.turn(Door.OPEN))
    await follows_more_load(lab)


@pytest.mark.core
async def test_prometheus_and_scaler_that_begin_anew_take_nothing_away_before_they_know_the_load(
    lab: Lab,
) -> None:
    # The exporters come last: until then nothing stored shows that there ever were GPUs.
    await run_under_load(lab, **SHORT_MAX_AGE)
    for exporter in lab.exporters.values():
        await exporter.turn(Door.SHUT)
    lab.timeline.note("Prometheus restarted empty, and the scaler")
    await lab.prometheus.restart_empty()
    known = len(lab.decisions("bert"))
    await lab.scaler.restart()
    await lab.wait(
        lambda: [made["value"] for made in lab.decisions("bert")[known:]][-1:] == [None],
        "nothing is known of the load",
    )
    await lab.offer("bert", LESS_LOAD)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert False not in {made["active"] for made in lab.decisions("bert")[known:]}, lab.story()
    lab.timeline.note("the exporters can be reached")
    for exporter in lab.exporters.values():
        await exporter.turn(Door.OPEN)
    await lab.reaches("bert", 2)
    assert lab.path("bert") == [REPLICAS, 2], lab.story()
    await goes_to_zero(lab)


@pytest.mark.generations
@pytest.mark.skipif(generation.KEDA_IS_OLDEST, reason="its fallback has no behavior")
async def test_keda_falls_back_in_an_outage_where_the_trigger_asks_for_errors(
    lab: Lab, keda_counts: Counts
) -> None:
    await lab.deploy("gpt", replicas=REPLICAS, load=LOAD)
    await deploy_under_load(lab)
    for workload, replicas in (("bert", 6), ("gpt", 2)):
        trigger = lab.gpu(workload, onUnknown="error", **SHORT_MAX_AGE)
        fallback = recommended_fallback() | {"failureThreshold": 3, "replicas": replicas}
        await lab.autoscale(workload, trigger, fallback=fallback)
        await the_hpa_has_a_number(lab, workload)
    errors, began = await keda_counts.errors(lab.name, "bert"), lab.timeline.now_seconds
    lab.timeline.note("Prometheus stopped")
    await lab.prometheus.stop()
    await lab.reaches("bert", 6)
    await lab.stays("bert", 6, for_seconds=8)
    assert await keda_counts.errors(lab.name, "bert") > errors, lab.story()
    lab.timeline.note("Prometheus started")
    await lab.prometheus.start()
    await lab.reaches("bert", REPLICAS)
    before, replaced, *after = lab.path("bert", began)
    assert (before, replaced, after[-1]) == (REPLICAS, 6, REPLICAS), lab.story()
    # What Prometheus stored before it stopped is read again: the recovery may have steps.
    assert after == sorted(after, reverse=True), lab.story()
    assert lab.path("gpt") == [REPLICAS], lab.story()


def recommended_fallback() -> dict[str, Any]:
    """Return the `fallback` of the page about how the scaler works."""
    (found,) = [
        piece.document["spec"]["fallback"]
        for piece in pieces(ROOT / "docs" / "how-it-works.md")
        if "fallback" in piece.document["spec"]
    ]
    return dict(found)
