"""Streams of type external-push: they open again and again, and carry `true` and nothing else.

KEDA polls once at the start and then not again in these tests: what moves afterwards was pushed.
That one poll has to succeed (test_push_errors.py shows what follows one that fails).
"""

from tests.e2e import streams
from tests.e2e.lab import Lab
from tests.e2e.product import Scaler
from tests.e2e.resources import ScaledObject

RARELY_SECONDS = 600


async def test_an_active_workload_is_pushed_once_whenever_a_stream_opens(lab: Lab) -> None:
    await lab.deploy("bert", replicas=2, load=120)
    await lab.is_known("bert")
    await lab.autoscale("bert", streams.push(lab, "bert"), polling_seconds=RARELY_SECONDS)
    await lab.becomes("bert", "measured")
    await lab.stays("bert", 2, for_seconds=3)
    known = await streams.last_activity(lab, "bert")
    assert known is not None, lab.story()
    # One scrape and one evaluation of the stream per second: a repeated push would show.
    await lab.stays("bert", 2, for_seconds=4)
    assert await streams.last_activity(lab, "bert") == known, lab.story()

    lab.scaler.stop()
    await lab.scaler.start()
    known = await streams.is_told(lab, "bert", known, "the scaler was restarted")
    assert streams.broken(lab) == [], lab.story()

    lab.scaler.kill()
    await lab.scaler.start()
    await streams.is_told(lab, "bert", known, "the scaler was killed and is back")
    assert streams.broken(lab) != [], lab.story()

    await lab.client.delete(ScaledObject, "bert", namespace=lab.name)
    await streams.ended(lab, "CANCELLED", 1)


async def test_streams_on_an_idle_workload_end_well_and_open_again_and_wake_nothing(
    lab: Lab,
) -> None:
    # A stream lives as long as a connection may; then another replica gets its share.
    short = {"CONNECTION_MAX_AGE": "3s"}
    scaler = Scaler(lab.directory, lab.scaler.prometheus_url, settings=short)
    try:
        await scaler.start()
        await lab.deploy("bert")
        await lab.is_known("bert")
        trigger = streams.push(lab, "bert", scalerAddress=scaler.address)
        await lab.autoscale("bert", trigger, min_replicas=0, polling_seconds=RARELY_SECONDS)
        await streams.ended(lab, "OK", 3, by=scaler)
        assert lab.path("bert") == [0], lab.story()
        assert await streams.last_activity(lab, "bert") is None
        assert streams.broken(lab) == [], lab.story()
    finally:
        scaler.stop()
