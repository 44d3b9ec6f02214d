"""`/metrics` of a process with thousands of triggers: it costs neither answers nor memory."""

import subprocess
from concurrent import futures

import pytest

from tests.support.serving import Scaler, peak_bytes, reference, writing_to

TRIGGERS = 9_000
SCRAPES = 3
"""A pair of Prometheus servers and one more client, at the same moment."""
SECONDS_FOR_ALL = 120
"""What all of them may take together, on a machine that does much else; a hang takes longer."""
GROWTH_BYTES = 80 * 1024 * 1024
"""What one metric of so many triggers is made from, and texts that wait to be read. To make three
pages at a time would take twice as much."""


def decide(scaler: Scaler, names: range) -> None:
    """Have a decision made for each of these ScaledObjects."""
    asked = (reference(f"bert-{number}") for number in names)
    calls = [scaler.stub.IsActive.future(each, timeout=60) for each in asked]
    assert all(call.result().result for call in calls)


@pytest.mark.slow(minutes=1)
def test_nine_thousand_triggers_are_shown_and_meanwhile_everything_else_is_answered() -> None:
    with writing_to(subprocess.DEVNULL) as scaler:
        for begin in range(0, TRIGGERS, 300):
            decide(scaler, range(begin, begin + 300))
        before = peak_bytes(scaler.process)
        with futures.ThreadPoolExecutor(SCRAPES) as pool:
            scrapes = [pool.submit(scaler.get, "/metrics", SECONDS_FOR_ALL) for _ in range(SCRAPES)]
            asked = 0
            while not all(scrape.done() for scrape in scrapes):
                assert scaler.get("/healthz") == "ok\n"
                scaler.specify()
                asked += 1
        for scrape in scrapes:
            assert scrape.result().count("keda_gpu_scaler_trigger_threshold{") == TRIGGERS
        assert asked > SCRAPES
        grown = peak_bytes(scaler.process) - before
        assert grown < GROWTH_BYTES
        assert scaler.end() == 0
