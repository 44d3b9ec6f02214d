"""What decides the triggers of files here: the settings, reader, sources and evaluator of a scaler.

What a scaler knows only because it runs is not there: what it knew before an outage, the calls of
the HPA, alerts. The decision is that of a scaler that has just started.
"""

import contextlib
import datetime as dt
import math
import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping

from keda_gpu_scaler import errors, settings, sources
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.settings.loading import PREFIX
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.workbench import check, manifest_files
from keda_gpu_scaler.workbench.check import FileTrigger

_UNIX_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")


def source_settings(prometheus_url: str | None = None, *, is_past: bool = False) -> Settings:
    """Return the settings as `serve` reads them, with this URL for the source `default`.

    With `is_past` they are without the Kubernetes API, which has only the present.
    """
    variable = f"{PREFIX}PROMETHEUS_URL"
    url = {} if prometheus_url is None else {variable: prometheus_url}
    try:
        chosen = settings.load({**os.environ, **url})
    except errors.SettingsError as error:
        if prometheus_url is None and os.environ.get(variable):
            raise
        # Where the environment does not set it, the command line does, or should.
        message = re.sub(rf"\b{variable}\b", "--prometheus-url", str(error))
        raise errors.SettingsError(message) from None
    return chosen.model_copy(update={"kubernetes": False}) if is_past else chosen


def instant(text: str, now: float) -> float:
    """Read a time in the past: RFC 3339 with an offset, Unix seconds, or how long ago (2h)."""
    at = math.nan
    with contextlib.suppress(ValueError, OverflowError):
        if _UNIX_SECONDS.fullmatch(text):
            at = float(text)
        elif durations.DURATION.fullmatch(text):
            at = now - durations.parse(text)
        elif (time := dt.datetime.fromisoformat(text)).tzinfo is not None:
            at = time.timestamp()
    if not 0 <= at <= now:
        raise ValueError(
            f"--at {text!r}: expected a time in the past: 2026-11-22T10:30:00Z, Unix seconds, or "
            "how long ago, such as 2h"
        )
    return at


def given(
    texts: Mapping[str, str], namespace: str, access: Access, wanted: ScaledObject | None = None
) -> list[FileTrigger]:
    """Return the triggers for this scaler in some texts, with `wanted` those of one ScaledObject.

    ValueError if something is wrong with one of them, or there is none.
    """
    parsed, findings = check.parse(manifest_files.triggers(texts, namespace, wanted), access)
    manifest_files.refuse(findings)
    return parsed


@contextlib.asynccontextmanager
async def open_evaluator(
    specs: Iterable[TriggerSpec],
    chosen: Settings,
    *,
    slow_seconds: float,
    at: float | None = None,
) -> AsyncIterator[Evaluator]:
    """Open the sources of some triggers, and no others, and yield what decides.

    A source that does not answer is no error: its trouble is in the record, with the answer of a
    scaler that has just started. `at` is as in `sources.start_evaluator`.
    """
    used = {name: chosen.sources[name] for name in sorted({spec.source for spec in specs})}
    async with contextlib.AsyncExitStack() as stack:
        yield await sources.start_evaluator(
            stack,
            chosen.model_copy(update={"sources": used}),
            facts.ignore,
            slow_seconds=slow_seconds,
            at=at,
        )
