"""What is wrong with a trigger by itself: the scaler's own reader says it. Pure.

Nothing here knows a key: what a trigger may say is told once, in `trigger/`.
"""

from collections.abc import Iterable, Iterator

from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Trigger
from keda_gpu_scaler.errors import Mistake
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS


def check(one: Trigger) -> Iterator[Finding]:
    """Yield what the scaler refuses in a trigger, needs a setting for, or warns of."""
    yield from refused(one, one.mistakes)
    for mistake in one.needs:
        yield _finding(one, "needs-setting", mistake, "Without a setting the scaler refuses")
    for warning in one.spec.warnings if one.spec is not None else ():
        # Every warning begins with the key that it is about.
        key, _, _ = warning.partition(" ")
        fix = f"Change {key}, or what the sentence compares it with."
        yield one.of.find("doubtful-value", one.place(key), warning, fix)


def refused(one: Trigger, mistakes: Iterable[Mistake]) -> Iterator[Finding]:
    """Yield a finding for each mistake, where its key is."""
    for mistake in mistakes:
        yield _finding(one, _rule(one, mistake), mistake, "The scaler refuses")


def _rule(one: Trigger, mistake: Mistake) -> str:
    if not mistake.key or mistake.key.removesuffix(FROM_ENV) in KEYS:
        return "wrong-value" if not mistake.key or mistake.key in one.metadata else "missing-key"
    return "unknown-key"


def _finding(one: Trigger, rule: str, mistake: Mistake, refuses: str) -> Finding:
    end = "" if mistake.advice.endswith("?") else "."
    fix = f"{mistake.advice[:1].upper()}{mistake.advice[1:]}{end}"
    return one.of.find(rule, one.place(mistake.key), f"{refuses} {mistake.what}", fix)
