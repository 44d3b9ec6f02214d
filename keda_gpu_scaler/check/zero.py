"""Rules about the way to zero replicas and back. Pure."""

import math
from collections.abc import Iterator

from keda_gpu_scaler.check.findings import Wrong
from keda_gpu_scaler.check.objects import Manifest, Trigger
from keda_gpu_scaler.check.replicas import shows_gpus
from keda_gpu_scaler.query.presets import PRESETS
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import Signal, TriggerSpec
from keda_gpu_scaler.trigger.keys import FROM_ENV
from keda_gpu_scaler.trigger.rules import IDLE_PERCENT

SCRAPE_SECONDS = 60
"""Prometheus' default; the interval of the source is not known here."""
_POLLING_SECONDS = 30
_COOLDOWN_SECONDS = 300
_WAKING = [preset.name for preset in PRESETS.values() if preset.wakes]
_WAKES = frozenset({"demandQuery", "activationWorkload"})
_SIGNALS = f"a demandQuery or a router's demandPreset ({', '.join(_WAKING)})"
_NEVER_WAKES = frozenset({"cpu", "memory"})
"""KEDA's own triggers on what pods use: with no pod they are inactive."""
_IDLE = {
    Signal.UTILIZATION: IDLE_PERCENT,
    Signal.MEMORY: 1.0,
    Signal.MEMORY_USED: 100.0,
    Signal.POWER: 15.0,
    Signal.TEMPERATURE: 25.0,
}
"""What a GPU shows that does nothing, and for the last four without a model; each at the least."""


def nothing_wakes(manifest: Manifest) -> Iterator[Wrong]:
    if not _sleeps_for_good(manifest) or any(
        trigger.type == "external-push" for trigger in manifest.ours
    ):
        return
    why = (
        "KEDA takes the last replica, and nothing but an alert sent to the scaler brings it "
        "back: without pods no GPU is busy"
    )
    if any("demandPreset" in trigger.metadata for trigger in manifest.ours):
        why += ", and this demandPreset shows no request"
    fix = (
        f"Write minReplicaCount: 1, or type external-push with {_SIGNALS} beside it, or with "
        "none if alerts are what you mean."
    )
    yield Wrong(manifest.node.place("spec", "minReplicaCount"), why, fix)


def push_without_signal(manifest: Manifest) -> Iterator[Wrong]:
    pushing = [trigger for trigger in manifest.ours if trigger.type == "external-push"]
    if pushing and _sleeps_for_good(manifest):
        why = (
            "only an alert that is sent to the scaler's webhook can wake this workload: the "
            "trigger is of type external-push and names nothing else that could"
        )
        fix = f"Add {_SIGNALS}, or an activationWorkload, unless alerts are what you mean."
        yield Wrong(pushing[0].node.place("type"), why, fix)


def _sleeps_for_good(manifest: Manifest) -> bool:
    return manifest.goes_to_zero and bool(manifest.ours) and not any(map(_wakes, manifest.triggers))


def _wakes(trigger: Trigger) -> bool:
    if trigger.is_ours:
        keys = {key.removesuffix(FROM_ENV) for key in trigger.metadata}
        preset = PRESETS.get(trigger.metadata.get("demandPreset", "").strip())
        by_preset = "demandPreset" in keys and (preset is None or preset.wakes)
        return by_preset or not _WAKES.isdisjoint(keys)
    return trigger.type not in _NEVER_WAKES and not shows_gpus(trigger.metadata.get("query", ""))


def never_idle(manifest: Manifest) -> Iterator[Wrong]:
    for trigger, spec in _sleeping(manifest):
        least = _IDLE.get(spec.signal, 0.0) if spec.query is None else 0.0
        if spec.activation_threshold < least:
            why = (
                f"activationThreshold {spec.activation_threshold:g} is below what a GPU shows that "
                f"does nothing ({least:g} {spec.signal.unit} and more): the workload hardly ever "
                "goes to zero"
            )
            fix = "Write a number a little above what your GPUs show while they are idle."
            yield Wrong(trigger.place("activationThreshold"), why, fix)


def short_activation_window(manifest: Manifest) -> Iterator[Wrong]:
    polling = manifest.node.integer("spec", "pollingInterval") or _POLLING_SECONDS
    for trigger, spec in _sleeping(manifest):
        window, needed = spec.activation_window_seconds, polling + SCRAPE_SECONDS
        if window < needed:
            why = (
                f"activationWindow {durations.text(window)} is shorter than a poll and a scrape of "
                f"{SCRAPE_SECONDS} s together ({durations.text(needed)}): a burst of work between "
                "two looks is not seen"
            )
            fix = f"Write {durations.text(needed)} or more."
            yield Wrong(trigger.place("activationWindow"), why, fix)


def short_cooldown(manifest: Manifest) -> Iterator[Wrong]:
    cooldown = manifest.node.integer("spec", "cooldownPeriod")
    if cooldown is None:
        cooldown = _COOLDOWN_SECONDS
    windows = [spec.activation_window_seconds for _, spec in _sleeping(manifest)]
    needed = max(windows, default=-math.inf) + SCRAPE_SECONDS
    if cooldown < needed:
        why = (
            f"cooldownPeriod {cooldown} s is shorter than activationWindow and a scrape of "
            f"{SCRAPE_SECONDS} s ({durations.text(needed)}): the workload can go down and up again "
            "between two requests"
        )
        fix = f"Write {math.ceil(needed)} or more, and more than a start takes."
        yield Wrong(manifest.node.place("spec", "cooldownPeriod"), why, fix)


def _sleeping(manifest: Manifest) -> Iterator[tuple[Trigger, TriggerSpec]]:
    for trigger in manifest.ours if manifest.goes_to_zero else ():
        if trigger.spec is not None:
            yield trigger, trigger.spec
