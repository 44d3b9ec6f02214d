"""Servers of language models: requests say how many replicas, and the GPUs keep the last one."""

import pytest

from tests.e2e import waking
from tests.e2e.lab import SHORT_TIMES, Lab
from tests.e2e.picker import REQUESTS
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, SHORT_MAX_AGE

TIMES = {key: SHORT_TIMES[key] for key in ("activationWindow", "warmup")} | SHORT_MAX_AGE
PICKER = {"demandPreset": "llm-d-epp-requests", "demandRouter": "llama-epp"}


@pytest.mark.core
async def test_requests_at_an_endpoint_picker_wake_scale_and_let_go(lab: Lab) -> None:
    labels = {"namespace": lab.name, "pod": "llama-epp-7b6667bd9-bbbbb"}
    target = {"targets": [f"127.0.0.1:{lab.simulator.port}"], "labels": labels}
    picker = {"job_name": "picker", "metrics_path": "/picker/llama/metrics", "honor_labels": True}
    await lab.offer("llama" + REQUESTS, 0)
    await lab.prometheus.reload(
        [*lab.prometheus.scrape_configs, picker | {"static_configs": [target]}]
    )
    await lab.prometheus.wait_for("llm_d_epp_request_running")
    await lab.deploy("llama")
    metadata = {"scalerAddress": lab.scaler.address, "workload": "llama", **PICKER, **TIMES}
    await waking.asleep(lab, "llama", {"type": "external-push", "metadata": metadata})

    await lab.offer("llama" + REQUESTS, 1)
    await waking.wakes(lab, "llama")
    await lab.offer("llama", 100)
    await lab.becomes("llama", "measured")
    await waking.poll_often(lab, "llama")
    await lab.offer("llama" + REQUESTS, 60)
    await lab.reaches("llama", 4)

    lab.timeline.note("Prometheus stopped")
    await lab.prometheus.stop()
    await lab.offer("llama" + REQUESTS, 0)
    await lab.becomes("llama", "unknown")
    await lab.stays("llama", 4, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lab.timeline.note("Prometheus started")
    await lab.prometheus.start()

    await lab.reaches("llama", 1)
    await lab.stays("llama", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.offer("llama", 0)
    await lab.reaches("llama", 0)
    assert lab.path("llama") == [0, 1, 4, 1, 0], lab.story()
