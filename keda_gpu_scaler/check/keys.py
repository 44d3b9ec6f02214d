"""What is wrong with a trigger by itself, in the words of the scaler's own parser. Pure.

Nothing here knows a key: `trigger/` alone defines what a trigger may contain.
"""

from collections.abc import Iterable, Iterator

from keda_gpu_scaler.check.findings import Wrong
from keda_gpu_scaler.check.objects import Manifest, Trigger
from keda_gpu_scaler.errors import Mistake
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS


def refused(trigger: Trigger, mistakes: Iterable[Mistake]) -> Iterator[tuple[str, Wrong]]:
    """Yield the name of the rule and what is wrong for each mistake, where its key is."""
    for mistake in mistakes:
        rule = "unknown-key"
        if not mistake.key or mistake.key.removesuffix(FROM_ENV) in KEYS:
            is_given = not mistake.key or mistake.key in trigger.metadata
            rule = "wrong-value" if is_given else "missing-key"
        yield rule, _wrong(trigger, mistake, "The scaler refuses")


def needs_setting(manifest: Manifest) -> Iterator[Wrong]:
    """Yield what the scaler accepts only with a setting of its operator."""
    for trigger in manifest.ours:
        for mistake in trigger.needs:
            yield _wrong(trigger, mistake, "Without a setting the scaler refuses")


def doubtful_value(manifest: Manifest) -> Iterator[Wrong]:
    """Yield what the scaler accepts with a warning in its log."""
    for trigger in manifest.ours:
        for warning in trigger.spec.warnings if trigger.spec is not None else ():
            # Every warning begins with the key that it is about.
            key = warning.partition(" ")[0]
            fix = f"Change {key}, or what the sentence compares it with."
            yield Wrong(trigger.place(key), warning, fix)


def _wrong(trigger: Trigger, mistake: Mistake, refuses: str) -> Wrong:
    end = "" if mistake.advice.endswith("?") else "."
    fix = f"{mistake.advice[:1].upper()}{mistake.advice[1:]}{end}"
    return Wrong(trigger.place(mistake.key), f"{refuses} {mistake.what}", fix)
