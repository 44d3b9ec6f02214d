"""Decides the triggers of a file without a running scaler, by its reader, sources and evaluator.

What a scaler knows only because it runs is not there: what it knew before an outage, the calls of
the HPA, alerts. `unknown_here` says so; the decision is that of a scaler that has just started.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from keda_gpu_scaler import app, check, errors, settings, trigger
from keda_gpu_scaler.check import documents, formats, keys
from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Manifest, Terms, Trigger, manifests
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.settings import ScrapeSettings, Settings
from keda_gpu_scaler.settings.names import PREFIX
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS

_MEMORY = (
    "what a running scaler knew before an outage, and whether the HPA asks: an unknown load is "
    "answered as by a scaler that has just started"
)
_ALERTS = "alerts: a running scaler also says active while one fires"
_NO_PAST = (
    "the past of source {name}: it is scraped directly, and a scaler holds until it has watched it "
    "for a whole window"
)
_REFUSED = frozenset(
    {
        "yaml-syntax",
        "too-large",
        "duplicate-key",
        "unknown-field",
        "missing-field",
        "wrong-type",
    }
)
"""The rules of `check` about a file that cannot be read, or that Kubernetes would not take."""


class LocalError(Exception):
    """There is nothing to decide; the message says why, for people."""


class Given(NamedTuple):
    """A trigger to decide."""

    scaled_object: ScaledObject
    spec: TriggerSpec


def source_settings(
    prometheus_url: str | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of the sources, as `serve` reads them.

    Args:
        prometheus_url: the source `default`, in the place of what the settings say of its URL.
        environ: the environment; by default that of this process.

    Raises:
        errors.SettingsError: something is wrong; the message names every wrong setting.
    """
    given = dict(os.environ if environ is None else environ)
    if prometheus_url is not None:
        given[f"{PREFIX}PROMETHEUS_URL"] = prometheus_url
    return settings.load(given)


def given(
    texts: Mapping[str, str], terms: Terms, access: Access, wanted: str | None = None
) -> list[Given]:
    """Return the triggers for this scaler that some texts hold.

    Args:
        texts: YAML by the names under which mistakes show it.
        terms: what is known beside it.
        access: what the settings allow ScaledObjects.
        wanted: the only ScaledObject, as namespace/name; None: all of them.

    Raises:
        LocalError: something is wrong with one that is wanted, or there is none; one line each.
    """
    found = [
        one
        for file, text in texts.items()
        for document in documents.read(text).documents
        for one in manifests(file, document, terms)
        if one.kind in ("ScaledObject", "ScaledJob")
    ]
    chosen = [one for one in found if wanted in (None, _name(one))]
    subjects = {"", *(one.subject for one in chosen)}
    refused = [
        one
        for one in check.check(texts, terms).findings
        if one.rule.name in _REFUSED and one.subject in subjects
    ]
    triggers: list[Given] = []
    for one in (each for object_ in chosen for each in object_.ours):
        read = _read(one, access)
        if isinstance(read, Given):
            triggers.append(read)
        else:
            refused += read
    if refused:
        raise LocalError("\n".join(_line(one) for one in refused))
    if not triggers:
        raise LocalError(_nothing(list(texts), found, chosen, wanted))
    return triggers


def _name(one: Manifest) -> str:
    return f"{one.namespace}/{one.name}"


def _read(one: Trigger, access: Access) -> Given | list[Finding]:
    from_env = list(_from_env(one))
    scaled_object = ScaledObject(one.of.namespace, one.of.name)
    try:
        spec = trigger.parse(scaled_object, one.metadata, access)
    except errors.SpecError as wrong:
        known = (each for each in wrong.mistakes if not each.key.endswith(FROM_ENV))
        return [*from_env, *keys.refused(one, known)]
    return from_env or Given(scaled_object, spec)


def _from_env(one: Trigger) -> Iterator[Finding]:
    """Yield what KEDA takes from the workload's environment: the file names a variable only."""
    for key in one.metadata:
        name = key.removesuffix(FROM_ENV)
        if name != key and name in KEYS:
            why = f"The value of {name} is in the environment of what is scaled, and not known here"
            fix = f"Write {name} with its value in a copy of the file."
            yield one.of.find("wrong-value", one.place(key), why, fix)


def _line(one: Finding) -> str:
    place = f"{one.file}:{one.position.line}:{one.position.column}"
    return f"{place}: {one.rule.severity} {one.rule.name}: {formats.message(one)}"


def _nothing(
    files: Sequence[str], found: Sequence[Manifest], chosen: Sequence[Manifest], wanted: str | None
) -> str:
    place = ", ".join(files)
    if not found:
        return f"{place}: there is no ScaledObject"
    if not chosen:
        return f"{place}: there is no {wanted}, only {', '.join(map(_name, found))}"
    return (
        f"{place}: no trigger of {', '.join(map(_name, chosen))} is for this scaler: expected type "
        "external or external-push, and a scalerAddress with gpu-scaler in it or a key such as "
        "workload"
    )


def unknown_here(triggers: Sequence[Given], chosen: Settings) -> list[str]:
    """Return what a running scaler knows beside the records of these triggers."""
    direct = sorted(
        {one.spec.source for one in triggers}
        & {name for name, each in chosen.sources.items() if isinstance(each, ScrapeSettings)}
    )
    return [_MEMORY, _ALERTS, *(_NO_PAST.format(name=name) for name in direct)]


async def records(
    triggers: Sequence[Given], chosen: Settings, *, slow_seconds: float = 10.0
) -> list[Record]:
    """Decide each trigger now, and return the records in the same order.

    A source that does not answer is no error: its trouble is in the record, with the answer of a
    scaler that has just started.

    Args:
        triggers: what to decide.
        chosen: the settings of the sources.
        slow_seconds: how long to wait for a source.

    Raises:
        errors.SettingsError: there is no cluster to query.
    """
    async with AsyncExitStack() as stack:
        evaluations = await app.start_evaluator(
            stack, chosen, facts.ignore, slow_seconds=slow_seconds
        )
        return await asyncio.gather(*(evaluations.record(*one) for one in triggers))
