"""What replicas tell each other, over HTTP."""

import pytest

from keda_gpu_scaler.alerts import LIMIT, AlertUpdate
from keda_gpu_scaler.alerts.replicas import written_records
from keda_gpu_scaler.alerts.store import Key
from tests.support.alert_messages import BERT, alert, group
from tests.support.webhooks import Hook, serving


@pytest.mark.parametrize("payload", [[], {"alerts": [1]}, group(alert())])
async def test_what_no_replica_sends_is_refused(payload: object) -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.post("/alerts", json=payload)
    assert answer.status_code == 400
    assert answer.text.startswith("expected ")
    assert hook.alerts.records() == []


@pytest.mark.slow
async def test_as_many_alerts_are_told_at_once_as_a_book_holds() -> None:
    first, second = Hook(limit=LIMIT), Hook(limit=LIMIT)
    keys = (Key(BERT, f"{number:016x}") for number in range(LIMIT))
    first.alerts.receive(AlertUpdate(key, "B" * 100, fires=True, starts_at=1.25) for key in keys)
    async with serving(second) as client:
        answer = await client.post("/alerts", content=written_records(first.alerts.records()))
    assert answer.status_code == 204
    assert second.alerts.records() == first.alerts.records()
