"""Rules about what the API server and KEDA refuse of any ScaledObject, whoever it asks. Pure.

`make keda-schema` makes the schema from the sources of KEDA and Kubernetes. What is in no schema,
because KEDA's webhook or operator alone refuses it, is in `refused_by_keda`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import resources
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.trigger.keys import KEYS
from keda_gpu_scaler.workbench.check.documents import Node, Position, shown
from keda_gpu_scaler.workbench.check.findings import Wrong
from keda_gpu_scaler.workbench.check.manifests import EXTERNAL, EXTERNAL_KEYS, MODIFIERS, Manifest

_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "object": "a mapping",
    "string": "a string",
}
_LIMITS = {
    "minimum": ("is {given}, below {wanted}", "Write {wanted} or more."),
    "maximum": ("is {given}, above {wanted}", "Write {wanted} or less."),
    "minLength": ("is empty", "Write a value."),
    "minItems": ("is empty", "Write one or more."),
    "format": ("is {given}, too large for {wanted}", "Write a smaller number."),
    "pattern": ("is {given}, which is no quantity", 'Write one, such as "0.1".'),
}
"""What a keyword of the schema says of a value, and what to write."""
_MOST_CHOICES = 8
"""More are not listed in a message."""
_RESOURCES = ("cpu", "memory")
"""KEDA's triggers that are metrics of the HPA itself."""


@cache
def _schema() -> Any:  # noqa: ANN401 - it is JSON
    text = resources.files(__package__).joinpath("scaledobject.json").read_text(encoding="utf-8")
    return json.loads(text)


@cache
def _types() -> frozenset[str]:
    """Return the types of triggers that KEDA has."""
    triggers = _schema()["properties"]["spec"]["properties"]["triggers"]
    return frozenset(triggers["items"]["properties"]["type"]["enum"])


@cache
def _validator() -> Draft202012Validator:
    formats = FormatChecker(formats=())
    for bits in (32, 64):
        # Another type is another error.
        formats.checks(f"int{bits}")(
            lambda value, most=1 << bits - 1: not isinstance(value, int) or -most <= value < most
        )
    return Draft202012Validator(_schema(), format_checker=formats)


def _value(node: Node, *, has_null: bool = False) -> object:
    """Return what the schema is about: the type of each value, and the text or the size.

    The API server drops a null, except in the metadata of a trigger.
    """
    match node.kind:
        case "mapping":
            return {
                key: _value(value, has_null=key == "metadata")
                for key, (_, value) in node.entries.items()
                if has_null or value.kind != "null"
            }
        case "list":
            return [_value(item) for item in node.items]
        case "number":
            for read in (partial(int, base=0), float):
                with suppress(ValueError):
                    return read(node.scalar)
            return math.nan
        case kind:
            return {"boolean": True, "null": None}.get(kind, node.scalar)


def refused(manifest: Manifest) -> Iterator[tuple[str, Wrong]]:
    """Yield the name of the rule and what is wrong for each error of the schema, at its place."""
    for error in _validator().iter_errors(_value(manifest.node)):
        path, wanted = [*error.absolute_path], error.validator_value
        position, node = manifest.node.at(path)
        steps = (f"[{step}]" if isinstance(step, int) else f".{shown(step)}" for step in path)
        name = "".join(steps).removeprefix(".") or "the object"
        fields = cast("dict[str, Any]", error.schema).get("properties", {})
        unknown = [key for key in node.entries if fields and key not in fields]
        given = {"given": shown(node.scalar), "wanted": wanted}
        match str(error.validator):
            case _ if error.instance is None and not (manifest.is_whole and path[0] == "spec"):
                pass  # in a patch it removes a key
            case "additionalProperties":
                for key in unknown:
                    why = f"{name} has no field {shown(key)}, and kubectl apply refuses it"
                    yield "unknown-field", Wrong(node.place(key), why, _instead(key, fields))
            case "type":
                yield "wrong-type", _wrong_type(name, position, node, wanted)
            case "enum" if node.kind == "string" and node.scalar:
                why = f"{name} is {shown(node.scalar)}, which does not exist"
                yield "unknown-value", Wrong(position, why, _one_of(node.scalar, wanted))
            case "required" if manifest.is_whole and not unknown:
                missing = ", ".join(key for key in wanted if not node.has(key))
                wrong = Wrong(position, f"{name} has no {missing}", f"Write {missing}.")
                yield "refused-value", wrong
            case keyword if keyword in _LIMITS:
                why, fix = (text.format(**given) for text in _LIMITS[keyword])
                yield "refused-value", Wrong(position, f"{name} {why}", fix)


def _instead(key: str, fields: Mapping[str, Any]) -> str:
    """Return what to do about a field that is unknown where there are these."""
    if "metricType" in fields and key in KEYS:
        return f"Move {key} to the trigger's metadata."
    meant = errors.nearest(key, fields)
    return f"Did you mean {meant}?" if meant else f"Write one of {', '.join(fields)}."


def _one_of(text: str, known: list[str]) -> str:
    meant = known[0] if len(known) == 1 else errors.nearest(text, known)
    if meant:
        return f"Did you mean {meant}?"
    if len(known) > _MOST_CHOICES:
        return "Write a type of KEDA 2.21; for this scaler, external or external-push."
    return f"Write one of {', '.join(known)}."


def _wrong_type(name: str, position: Position, node: Node, wanted: str | list[str]) -> Wrong:
    types = [wanted] if isinstance(wanted, str) else wanted
    words, text = " or ".join(_WORDS[kind] for kind in types), shown(node.scalar)
    given = f"{node.kind} ({text})" if text else node.kind
    why = f"{name} is a {given}, and the API server accepts only {words} here"
    fix = f"Write {words}."
    if node.kind == "null":
        why = f"{name} is null: the API server refuses it in a server-side apply"
        fix = f"Write {words}, or remove the key."
    elif "string" in types and text:
        fix = f'Put it in quotes: "{text}".'
    elif text.isdecimal() if "integer" in types else text in {"true", "false"}:
        fix = f"Remove the quotes: {text}."
    elif "integer" in types and text and durations.DURATION.fullmatch(text):
        fix = f"Write the seconds alone: {durations.parse(text):.0f}."
    return Wrong(position, why, fix)


def is_of_keda(manifest: Manifest) -> bool:
    """Tell whether it is a ScaledObject, also one whose kind is misspelt."""
    kinds, kind = _schema()["properties"]["kind"]["enum"], manifest.kind
    is_misspelt = manifest.node.text("apiVersion").startswith("keda.sh/") and kind not in kinds
    return kind == "ScaledObject" or is_misspelt


def other_type(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.triggers:
        key = next((key for key in trigger.metadata if key in EXTERNAL_KEYS), "")
        if key and trigger.type in _types() - EXTERNAL:
            why = f"KEDA's {trigger.type} trigger does not read {key}, a key of this scaler's"
            yield Wrong(trigger.node.place("type"), why, "Write type: external.")


def refused_by_keda(manifest: Manifest) -> Iterator[Wrong]:
    """Yield what the CRD's schema allows and KEDA does not."""
    spec, minimum = manifest.node.block("spec"), manifest.minimum
    if minimum > manifest.maximum:
        why = f"minReplicaCount {minimum} is above maxReplicaCount {manifest.maximum}"
        fix = f"Write maxReplicaCount: {minimum} or more, or a smaller minReplicaCount."
        yield Wrong(spec.place("minReplicaCount"), f"{why}: the API server refuses it", fix)
    if spec.integer("idleReplicaCount") == 0 and not spec.has("minReplicaCount"):
        why = "idleReplicaCount 0 is not below minReplicaCount, which is 0 where it is missing"
        fix = "Remove idleReplicaCount, or write minReplicaCount: 1."
        yield Wrong(spec.place("idleReplicaCount"), f"{why}: KEDA's webhook refuses it", fix)
    if manifest.formula and not manifest.node.has(*MODIFIERS, "target"):
        why = "scalingModifiers have a formula and no target: KEDA's webhook refuses it"
        yield Wrong(manifest.node.place(*MODIFIERS, "formula"), why, "Write target.")
    types = {trigger.type for trigger in manifest.triggers}
    if spec.has("fallback") and types <= {*_RESOURCES} and not manifest.formula:
        why = "fallback needs a trigger other than cpu and memory: KEDA's webhook refuses it"
        yield Wrong(spec.place("fallback"), why, "Remove fallback.")
    names: set[str] = set()
    for trigger in manifest.triggers:
        node = trigger.node
        if trigger.name and trigger.name in names:
            why = f"a second trigger has the name {shown(trigger.name)}: KEDA's webhook refuses it"
            yield Wrong(node.place("name"), why, "Write another name.")
        names.add(trigger.name)
        is_cached = node.text("useCachedMetrics").lower() == "true"
        if is_cached and trigger.type in (*_RESOURCES, "cron"):
            why = f"a {trigger.type} trigger has no useCachedMetrics: KEDA's webhook refuses it"
            yield Wrong(node.place("useCachedMetrics"), why, "Remove useCachedMetrics.")
        metric_type = node.text("metricType")
        other = "Utilization" if trigger.type in _RESOURCES else "Value"
        if metric_type not in ("", "AverageValue", other) and trigger.type in _types():
            why = f"metricType is {shown(metric_type)}: KEDA's operator refuses it in this trigger"
            yield Wrong(node.place("metricType"), why, f"Write AverageValue or {other}.")
