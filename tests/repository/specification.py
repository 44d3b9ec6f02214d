"""`make schema`: write docs/specification.md, one trigger with every key and a section for each.

Meanings, defaults and forms come from the code that reads a trigger. What is written here are the
examples, the limits (a test tries both sides of each) and the order.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from keda_gpu_scaler.trigger import KEDA_KEYS, KEYS
from tests.repository import schema
from tests.support.go_modules import ROOT

PAGE = ROOT / "docs" / "specification.md"
_COLUMNS = 80
_INDENT = " " * 6
_PROPERTIES: Mapping[str, Any] = schema.metadata()["properties"]
_DURATION = _PROPERTIES["window"]["pattern"]
_NUMBER = _PROPERTIES["threshold"]["pattern"]


class Group(NamedTuple):
    """Keys that belong together, and where their rules are."""

    title: str
    keys: tuple[str, ...]
    rules: str


GROUPS = (
    Group("Pods", ("workload", "podPattern", "namespace"), "trigger.md#whose-pods"),
    Group(
        "Load",
        (
            "signal",
            "threshold",
            "aggregation",
            "gpuAggregation",
            "window",
            "maxAge",
            "startTimeout",
            "warmup",
            "profile",
            "source",
        ),
        "trigger.md#what-is-measured",
    ),
    Group("PromQL for the load", ("query",), "trigger.md#promql-of-your-own"),
    Group(
        "Activation",
        ("activationThreshold", "activationWindow", "activationWorkload"),
        "trigger.md#what-is-answered",
    ),
    Group(
        "Demand",
        (
            "demandQuery",
            "demandPreset",
            "demandRouter",
            "demandModel",
            "demandActivationThreshold",
            "demandThreshold",
            "demandOnEmpty",
        ),
        "trigger.md#demand",
    ),
    Group("Answer", ("onUnknown", "metricName"), "trigger.md#what-is-answered"),
)
ELSEWHERE = {
    "aggregation": "trigger.md#what-is-answered",
    "threshold": "trigger.md#what-is-answered",
    "activationWorkload": "trigger.md#another-workload",
    "onUnknown": "states.md#onunknown",
    "profile": "exporters.md#profiles",
    "source": "settings.md#several-sources",
    "demandPreset": "presets.md",
}
"""Keys whose rules are not where those of their group are."""
EXAMPLES = {
    "workload": "deployment/bert",
    "podPattern": "bert-[0-9]+-gpu",
    "namespace": "inference",
    "signal": "utilization",
    "threshold": "70",
    "aggregation": "sum",
    "gpuAggregation": "average",
    "window": "2m",
    "maxAge": "3m",
    "startTimeout": "30m",
    "warmup": "2m",
    "profile": "auto",
    "source": "default",
    "query": '100 * max by (namespace, pod) ({__name__=~"vllm:(kv|gpu)_cache_usage_perc"})',
    "activationThreshold": "2",
    "activationWindow": "2m",
    "activationWorkload": "deployment/tokenizer",
    "demandQuery": 'sum(router_requests_in_progress{service="bert"})',
    "demandPreset": "llm-d-epp-queue",
    "demandRouter": "deployment/llama-epp",
    "demandModel": "llama",
    "demandActivationThreshold": "0",
    "demandThreshold": "20",
    "demandOnEmpty": "error",
    "onUnknown": "hold",
    "metricName": "gpu-utilization",
}
REPLACED: Mapping[str, tuple[str, ...]] = {
    "podPattern": ("workload",),
    "query": ("profile", "activationWorkload"),
    "demandPreset": ("demandQuery",),
}
"""Keys that are comments in the trigger, with those in whose place they stand."""
NEEDED = {"demandRouter": "demandPreset", "demandModel": "demandPreset"}
"""Keys that are comments as well, with the one that they go with."""
LIMITS = {
    "window": ("1s", "1h"),
    "activationWindow": ("1s", "1h"),
    "maxAge": ("1s", "1h"),
    "warmup": ("0s", "1h"),
    "startTimeout": ("1s", "1d"),
    "threshold": ("0.001", "90"),
    "demandThreshold": ("0.001", None),
    "activationThreshold": ("0", None),
    "demandActivationThreshold": ("0", None),
}
"""The least and the largest value that is taken; None: any number below 2^53."""
_TEXTS = {
    "workload": "`NAME` or `KIND/NAME`, as for kubectl",
    "podPattern": "an RE2 pattern for the whole name of a pod",
    "namespace": "a namespace",
    "source": "a name of [the settings](settings.md#several-sources)",
    "query": "PromQL for an instant vector",
    "activationWorkload": "`NAME` or `KIND/NAME`, as for kubectl",
    "demandQuery": "PromQL for a scalar or a vector of one element",
    "demandRouter": "`NAME` or `KIND/NAME`, as for kubectl",
    "demandModel": "a model's name, at most 256 characters",
    "metricName": "letters, digits, `-`, `_` and `.`, at most 200 characters",
}
_BOUNDED = "{} to {}; above 90 only where a load can be above 100"
_OF_KEDA = sorted(KEDA_KEYS - {"scalerAddress"})
_HEAD = f"""# Trigger specification

One trigger with every key, then each key by itself. This page is made from the code that reads a
trigger (`make schema`). [Triggers](trigger.md) says how the keys work together.

Copy what you need. Only [`threshold`](#threshold) is always required, and
[`workload`](#workload) in most cases. All values are strings, as Kubernetes wants metadata to be.
Each key can also be written with `FromEnv` at its end: KEDA then takes the value from the target
container's environment.

```yaml
triggers:
  # external-push: a stream as well, on which a demand or an alert wakes within seconds.
  - type: external
    # KEDA's default, for aggregation: sum. Value is for aggregation: average.
    metricType: AverageValue
    metadata:
      # KEDA's own: the scaler's Service. So are {", ".join(_OF_KEDA[:3])},
      # {" and ".join(_OF_KEDA[3:])}.
      scalerAddress: keda-gpu-scaler.keda.svc:6000
"""


def default(key: str) -> str:
    """Return what applies where a key is not given, in words; empty: nothing."""
    one = KEYS[key]
    if one.default is not None:
        return one.default
    return "" if one.otherwise == "-" else one.otherwise.removeprefix("-; ")


def _comment(text: str) -> Iterator[str]:
    lines = textwrap.wrap(
        text, _COLUMNS - len(_INDENT) - 2, break_on_hyphens=False, break_long_words=False
    )
    return (f"{_INDENT}# {line}" for line in lines)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _usual(key: str) -> str:
    said = default(key)
    if not said:
        return "Optional."
    if said.startswith("required"):
        return f"{_capital(said)}."
    return f"Default: {said}."


def _entry(key: str) -> Iterator[str]:
    yield ""
    meaning = _capital(KEYS[key].meaning)
    yield from _comment(f"{meaning}. {_usual(key)}")
    line = f"{key}: {_quoted(EXAMPLES[key])}"
    if key in REPLACED:
        instead = " and ".join(REPLACED[key])
        yield f"{_INDENT}# In place of {instead}:"
    elif key in NEEDED:
        yield f"{_INDENT}# With {NEEDED[key]}:"
    is_comment = key in REPLACED or key in NEEDED
    yield f"{_INDENT}{'# ' * is_comment}{line}"


def _quoted(value: str) -> str:
    """Return a value as YAML reads it as a string."""
    if re.fullmatch(r"[\d.]+", value):
        return f'"{value}"'
    return f"'{value}'" if re.search(r'[{}"\[\]*:#]', value) else value


def form(key: str) -> str:
    """Return which values a key takes."""
    one = _PROPERTIES[key]
    if "enum" in one:
        return ", ".join(f"`{word}`" for word in one["enum"])
    if key in _TEXTS:
        return _TEXTS[key]
    what = {_DURATION: "a duration", _NUMBER: "a number"}[one["pattern"]]
    least, largest = LIMITS[key]
    if key == "threshold":
        return f"{what}, {_BOUNDED.format(least, largest)}"
    return f"{what}, {least} or more" if largest is None else f"{what}, {least} to {largest}"


def _section(key: str, rules: str) -> str:
    said = default(key)
    shown = f"`{said}`" if KEYS[key].default else said.replace("<", r"\<") or "none: optional"
    rows = [("default", shown), ("values", form(key)), ("example", f"`{EXAMPLES[key]}`")]
    if key in REPLACED:
        rows.append(
            ("in place of", ", ".join(f"[`{one}`](#{one.lower()})" for one in REPLACED[key]))
        )
    if key in NEEDED:
        rows.append(("with", f"[`{NEEDED[key]}`](#{NEEDED[key].lower()})"))
    table = "".join(f"| {name} | {_cell(text)} |\n" for name, text in rows)
    meaning = _capital(KEYS[key].meaning).replace("[kind/]name", "`[kind/]name`")
    return f"### {key}\n\n{meaning}. [Rules]({rules}).\n\n| | |\n| --- | --- |\n{table}"


def _link(key: str) -> str:
    return f"[`{key}`](#{key.lower()})"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def text() -> str:
    """Return the page."""
    keys = [key for group in GROUPS for key in group.keys]
    block = "\n".join(line for key in keys for line in _entry(key))
    parts = [f"{_HEAD}{block}\n```\n"]
    for group in GROUPS:
        parts.append(f"## {group.title}\n")
        parts += [_section(key, ELSEWHERE.get(key, group.rules)) for key in group.keys]
    return "\n".join(parts)


def write() -> None:
    """Write the page."""
    PAGE.write_text(text())


if __name__ == "__main__":
    write()
