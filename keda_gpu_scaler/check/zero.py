"""Rules about the way to zero replicas and back. Pure."""

import math
from collections.abc import Iterator

from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Manifest, Trigger, shown
from keda_gpu_scaler.check.replicas import shows_gpus
from keda_gpu_scaler.check.workloads import World
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


def check(of: Manifest, world: World) -> Iterator[Finding]:
    """Yield what keeps a ScaledObject from zero, or from coming back."""
    if not of.goes_to_zero or not of.ours:
        return
    yield from _waking(of)
    for one in of.ours:
        if one.spec is not None:
            yield from _never_idle(one, one.spec)
            yield from _windows(one, one.spec, world)


def _waking(of: Manifest) -> Iterator[Finding]:
    if any(_wakes(one) for one in of.triggers):
        return
    pushing = [one for one in of.ours if one.type == "external-push"]
    if pushing:
        why = (
            "only an alert that is sent to the scaler's webhook can wake this workload: the "
            "trigger is of type external-push and names nothing else that could"
        )
        fix = f"Add {_SIGNALS}, or an activationWorkload, unless alerts are what you mean."
        yield of.find("push-without-signal", pushing[0].node.place("type"), why, fix)
    else:
        why = (
            "KEDA takes the last replica, and nothing but an alert sent to the scaler brings it "
            "back: without pods no GPU is busy"
        )
        presets = {
            one.metadata["demandPreset"] for one in of.ours if "demandPreset" in one.metadata
        }
        if presets:
            why += f", and {shown(', '.join(sorted(presets)))} shows no request"
        fix = (
            f"Write minReplicaCount: 1, or type external-push with {_SIGNALS} beside it, or with "
            "none if alerts are what you mean."
        )
        place = of.node.place("spec", "minReplicaCount")
        yield of.find("nothing-wakes", place, why, fix)


def _wakes(one: Trigger) -> bool:
    if one.is_ours:
        keys = {key.removesuffix(FROM_ENV) for key in one.metadata}
        preset = PRESETS.get(one.metadata.get("demandPreset", "").strip())
        by_preset = "demandPreset" in keys and (preset is None or preset.wakes)
        return by_preset or not _WAKES.isdisjoint(keys)
    return one.type not in _NEVER_WAKES and not shows_gpus(one.metadata.get("query", ""))


def _never_idle(one: Trigger, spec: TriggerSpec) -> Iterator[Finding]:
    least = _IDLE.get(spec.signal, 0.0) if spec.query is None else 0.0
    if spec.activation_threshold < least:
        why = (
            f"activationThreshold {spec.activation_threshold:g} is below what a GPU shows that "
            f"does nothing ({least:g} {spec.signal.unit} and more): the workload hardly ever goes "
            "to zero"
        )
        fix = "Write a number a little above what your GPUs show while they are idle."
        yield one.of.find("never-idle", one.place("activationThreshold"), why, fix)


def _windows(one: Trigger, spec: TriggerSpec, world: World) -> Iterator[Finding]:
    of = one.of
    polling = _or(of.node.integer("spec", "pollingInterval"), _POLLING_SECONDS)
    cooldown = _or(of.node.integer("spec", "cooldownPeriod"), _COOLDOWN_SECONDS)
    window = spec.activation_window_seconds
    start = world.slowest_probe_seconds(of)
    if window < polling + SCRAPE_SECONDS:
        why = (
            f"activationWindow {durations.text(window)} is shorter than a poll and a scrape of "
            f"{SCRAPE_SECONDS} s together ({durations.text(polling + SCRAPE_SECONDS)}): a burst of "
            "work between two looks is not seen"
        )
        fix = f"Write {durations.text(polling + SCRAPE_SECONDS)} or more."
        yield of.find("short-activation-window", one.place("activationWindow"), why, fix)
    needed, what = window + SCRAPE_SECONDS, f"activationWindow and a scrape of {SCRAPE_SECONDS} s"
    if start > needed:
        needed, what = start, "a new pod's first probe"
    if cooldown < needed:
        why = (
            f"cooldownPeriod {cooldown} s is shorter than {what} ({durations.text(needed)}): the "
            "workload can go down and up again between two requests"
        )
        fix = f"Write {math.ceil(needed)} or more, and more than a start takes."
        yield of.find("short-cooldown", of.node.place("spec", "cooldownPeriod"), why, fix)


def _or(found: int | None, usual: int) -> int:
    return usual if found is None else found
