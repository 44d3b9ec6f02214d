"""Alerts with two replicas of the scaler behind one name: each passes its alerts to the other."""

import contextlib
import dataclasses
import functools
from collections.abc import AsyncIterator
from typing import Any

from tests.e2e import alerting, streams, waking
from tests.e2e.alertmanager import Alertmanager
from tests.e2e.lab import PATIENCE_SECONDS, Lab
from tests.e2e.manifests import Manifest
from tests.e2e.name_server import NameServer
from tests.e2e.product import Scaler

LIFETIME_SECONDS = 60
"""The shortest that the scaler takes."""
LONGER_THAN_TWO_STARTS = 60
"""A cooldown: while both replicas start, none reports the workload as active."""


@contextlib.asynccontextmanager
async def _two_replicas(lab: Lab) -> AsyncIterator[tuple[Scaler, Scaler, Manifest]]:
    """Run a second replica, at the same ports of another address; return a trigger that asks both.

    They know each other, and themselves, as with a headless Service's name.
    """
    first, host = lab.scaler, "127.0.0.2"
    peers = f"dns+http://localhost:{first.http_port},http://{host}:{first.http_port}"
    settings = {"WEBHOOK_LIFETIME": f"{LIFETIME_SECONDS}s", "WEBHOOK_PEERS": peers}
    await alerting.open_webhook(lab, **settings)
    second = dataclasses.replace(first, host=host)
    async with NameServer("scaler.test", {first.host, host}).serving() as names:
        try:
            await second.start()
            yield first, second, lab.gpu("bert", scalerAddress=names.target(first.port))
        finally:
            second.stop()


async def test_replicas_say_the_same_of_an_alert_learn_it_anew_and_forget_it_together(
    lab: Lab, alertmanager: Alertmanager
) -> None:
    async with _two_replicas(lab) as (untold, told, trigger):
        both = untold, told
        say = functools.partial(_say, lab, trigger, both)
        await _all_asleep(lab, trigger)
        await say(active=False)
        await _raise_when_there_are_requests(lab, alertmanager, told)
        await lab.offer(alerting.REQUESTS, 5)
        await waking.wakes(lab, "pushed")
        await say(active=True)
        await _keda_hears_of_it_from(lab, both)
        await lab.reaches("bert", 1)

        lab.timeline.note("the replica that was told is killed, and comes back")
        told.kill()
        await told.start()
        assert await alerting.is_active(lab, told, "bert", trigger), lab.story()
        # It could be active for want of samples as well.
        assert "alert Wanted fires" in _last_reason(told), told.tail()

        lab.timeline.note("both replicas are killed, and come back")
        for each in both:
            each.kill()
        for each in both:
            await each.start()
        await say(active=False)
        await alertmanager.notify(alerting.url(told), alerting.TOKEN, repeat="1s")
        await say(active=True)

        lab.timeline.note("Alertmanager is gone")
        alertmanager.stop()
        await lab.stays("bert", 1, for_seconds=LIFETIME_SECONDS - 20)
        await say(active=True, within_seconds=0)
        await say(active=False)
        assert lab.path("bert") == [0, 1], lab.story()


async def _all_asleep(lab: Lab, trigger: Manifest) -> None:
    """Have KEDA ask both replicas about one workload, and open the stream of one with the first."""
    await lab.deploy("bert")
    await lab.autoscale("bert", trigger, min_replicas=0, cooldown_seconds=LONGER_THAN_TWO_STARTS)
    await lab.deploy("pushed")
    await waking.asleep(lab, "pushed", streams.push(lab, "pushed"))


async def _raise_when_there_are_requests(
    lab: Lab, alertmanager: Alertmanager, told: Scaler
) -> None:
    """Raise an alert about each workload, and tell one replica of them, once."""
    await alertmanager.notify(alerting.url(told), alerting.TOKEN)
    names = "bert", "pushed"
    rules = [alerting.on_requests(lab, "Wanted", **alerting.about(name)) for name in names]
    await alerting.judge(lab, alertmanager, *rules)


def _last_reason(scaler: Scaler) -> str:
    made = [one for one in scaler.events("decision.made") if one["scaled_object"] == "bert"]
    return str(made[-1]["reason"])


async def _say(
    lab: Lab,
    trigger: Manifest,
    scalers: tuple[Scaler, ...],
    *,
    active: bool,
    within_seconds: float = PATIENCE_SECONDS,
) -> None:
    """Wait until each replica says this when it is asked by itself."""

    async def said() -> bool:
        answers = [await alerting.is_active(lab, each, "bert", trigger) for each in scalers]
        for scaler, answer in zip(scalers, answers, strict=True):
            lab.timeline.see(scaler.host, "is active", answer)
        return set(answers) == {active}

    await lab.wait(said, f"every replica says that bert is active: {active}", within_seconds)


async def _keda_hears_of_it_from(lab: Lab, scalers: tuple[Scaler, ...]) -> None:
    """Wait until KEDA has asked each replica twice more: none may have said anything else."""
    before = {each.host: len(each.events("decision.made")) for each in scalers}

    def answers() -> list[list[dict[str, Any]]]:
        return [each.events("decision.made")[before[each.host] :] for each in scalers]

    async def asked() -> bool:
        return min(map(len, answers())) >= 2

    await lab.wait(asked, "KEDA asks both replicas")
    assert all(one["active"] for made in answers() for one in made), lab.story()
