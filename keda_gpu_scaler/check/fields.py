"""The fields of KEDA's objects, their types and limits, as of KEDA 2.21. Pure.

The table has what a mistake is likely in. What is below a field with no table of its own, such as a
job's template, is for the API server alone.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from keda_gpu_scaler.check.findings import Finding, Position
from keda_gpu_scaler.check.nodes import Block, Entry, Scalar, Sequence
from keda_gpu_scaler.check.objects import Manifest, shown

_TYPES = {"string": "a string", "integer": "a whole number", "boolean": "true or false"}
_TYPES |= {"list": "a list", "mapping": "a mapping", "strings": "strings"}


class Field(NamedTuple):
    """One field: its type, and what it takes."""

    type: str = "string"
    """A key of the types above; `any` is not looked at, and `strings` is a mapping of strings."""
    required: bool = False
    least: int = 0
    choices: tuple[str, ...] = ()
    below: "Mapping[str, Field] | None" = None
    """The fields of a mapping, or of each mapping of a list."""


_TEXT, _COUNT, _FLAG, _ANY = Field(), Field("integer"), Field("boolean"), Field("any")
_EXTERNAL_TYPES = ("AverageValue", "Value")
_AT_LEAST_ONE = Field("integer", least=1)
_POLICIES = {name: Field(kind, required=True) for name, kind in (
    ("type", "string"), ("value", "integer"), ("periodSeconds", "integer"),
)}  # fmt: skip
_SCALING = Field("mapping", below={
    "policies": Field("list", below=_POLICIES),
    "selectPolicy": Field(choices=("Max", "Min", "Disabled")),
    "stabilizationWindowSeconds": _COUNT,
    "tolerance": _ANY,
})  # fmt: skip
_TRIGGERS = Field("list", required=True, below={
    "type": Field(required=True),
    "name": _TEXT,
    "metadata": Field("strings", required=True),
    "metricType": Field(choices=(*_EXTERNAL_TYPES, "Utilization")),
    "useCachedMetrics": _FLAG,
    "authenticationRef": Field("mapping", below={
        "name": Field(required=True),
        "kind": Field(choices=("TriggerAuthentication", "ClusterTriggerAuthentication")),
    }),
})  # fmt: skip
_SCALED_OBJECT = {
    "scaleTargetRef": Field("mapping", required=True, below={
        "name": Field(required=True),
        "kind": _TEXT,
        "apiVersion": _TEXT,
        "envSourceContainerName": _TEXT,
    }),
    "pollingInterval": _AT_LEAST_ONE,
    "cooldownPeriod": _COUNT,
    "initialCooldownPeriod": _COUNT,
    "idleReplicaCount": _COUNT,
    "minReplicaCount": _COUNT,
    "maxReplicaCount": _AT_LEAST_ONE,
    "fallback": Field("mapping", below={
        "failureThreshold": Field("integer", required=True),
        "replicas": Field("integer", required=True),
        "behavior": Field(choices=(
            "static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower",
            "scalingModifiers",
        )),
    }),
    "advanced": Field("mapping", below={
        "restoreToOriginalReplicaCount": _FLAG,
        "horizontalPodAutoscalerConfig": Field("mapping", below={
            "name": _TEXT,
            "behavior": Field("mapping", below={"scaleUp": _SCALING, "scaleDown": _SCALING}),
        }),
        "scalingModifiers": Field("mapping", below={
            "formula": _TEXT,
            "target": _TEXT,
            "activationTarget": _TEXT,
            "metricType": Field(choices=_EXTERNAL_TYPES),
        }),
    }),
    "triggers": _TRIGGERS,
}  # fmt: skip
_SCALED_JOB = {
    "jobTargetRef": Field("any", required=True),
    "envSourceContainerName": _TEXT,
    "failedJobsHistoryLimit": _COUNT,
    "successfulJobsHistoryLimit": _COUNT,
    "maxReplicaCount": _AT_LEAST_ONE,
    "minReplicaCount": _COUNT,
    "pollingInterval": _AT_LEAST_ONE,
    "rollout": _ANY,
    "rolloutStrategy": _TEXT,
    "scalingStrategy": _ANY,
    "triggers": _TRIGGERS,
}
_REFERENCES = Field("list", below={
    "parameter": Field(required=True), "name": Field(required=True), "key": Field(required=True),
})  # fmt: skip
_AUTHENTICATION = {
    "secretTargetRef": _REFERENCES,
    "configMapTargetRef": _REFERENCES,
    **dict.fromkeys(
        (
            "awsSecretManager",
            "azureKeyVault",
            "azureServicePrincipal",
            "boundServiceAccountToken",
            "env",
            "filePath",
            "gcpSecretManager",
            "hashiCorpVault",
            "oauth2",
            "podIdentity",
        ),
        _ANY,
    ),
}
SPECS: Mapping[str, Mapping[str, Field]] = {
    "ScaledObject": _SCALED_OBJECT,
    "ScaledJob": _SCALED_JOB,
    "TriggerAuthentication": _AUTHENTICATION,
    "ClusterTriggerAuthentication": _AUTHENTICATION,
}
"""The fields of each kind's spec."""
_LONGEST_NAME = 54
"""KEDA puts `keda-hpa-` before it, and refuses more than 63 characters of the two together."""


def check(of: Manifest) -> Iterator[Finding]:
    """Yield what KEDA's own definitions refuse in an object of its group or of one of its kinds."""
    if not of.is_of_keda:
        why = f"{of.kind} is a kind of keda.sh/v1alpha1, and apiVersion says another group"
        fix = "Write apiVersion: keda.sh/v1alpha1."
        yield of.find("unknown-field", of.node.place("apiVersion"), why, fix)
        return
    if of.kind not in SPECS:
        advice = _nearest(of.kind, SPECS)
        yield of.find(
            "unknown-field", of.node.place("kind"), f'KEDA has no kind "{shown(of.kind)}"', advice
        )
        return
    if not of.name and not of.node.has("metadata", "generateName"):
        yield _missing(of, of.node.place("metadata"), "metadata.name")
    if not of.node.has("spec"):
        yield _missing(of, of.node.position, "spec")
        return
    place = of.node.place("spec")
    yield from _below(of, of.node.block("spec"), place, SPECS[of.kind], ("spec",))
    if of.kind == "ScaledObject":
        yield from _bounds(of)
        yield from _name(of)
    for one in of.triggers:
        if one.type in ("external", "external-push") and "scalerAddress" not in one.metadata:
            yield _missing(of, one.place("scalerAddress"), "metadata.scalerAddress")


def _below(
    of: Manifest, node: Block, place: Position, fields: Mapping[str, Field], path: tuple[str, ...]
) -> Iterator[Finding]:
    for key, entry in node.entries.items():
        if key not in fields:
            name = shown(".".join((*path, key)))
            why = f'KEDA has no field "{name}": the API server refuses it or drops it'
            yield of.find("unknown-field", entry.position, why, _nearest(key, fields))
        else:
            yield from _value(of, entry, fields[key], (*path, key))
    for key, one in fields.items():
        if one.required and not node.has(key):
            yield _missing(of, place, ".".join((*path, key)))


def _value(of: Manifest, entry: Entry, one: Field, path: tuple[str, ...]) -> Iterator[Finding]:
    value, name = entry.value, ".".join(path)
    if one.type == "any" or value.kind == "null":
        return
    if not _fits(value, one.type):
        why = f"{name} is a {value.kind}, and the API server takes {_TYPES[one.type]} alone"
        yield of.find("wrong-type", entry.position, why, _typed(value, one.type))
    elif isinstance(value, Scalar):
        yield from _scalar(of, entry.position, value, one, name)
    elif isinstance(value, Sequence):
        yield from _items(of, entry.position, value, one, path)
    elif one.type == "strings":
        yield from _strings(of, value, name)
    else:
        yield from _below(of, value, entry.position, one.below or {}, path)


def _scalar(
    of: Manifest, place: Position, value: Scalar, one: Field, name: str
) -> Iterator[Finding]:
    number = value.integer
    if number is not None and number < one.least:
        why = f"{name} is {number}: the API server refuses less than {one.least}"
        yield of.find("wrong-type", place, why, f"Write {one.least} or more.")
    if one.choices and value.text not in one.choices:
        why = f'{name} is "{shown(value.text)}", which KEDA does not know'
        yield of.find("wrong-type", place, why, _nearest(value.text, one.choices))


def _items(
    of: Manifest, place: Position, value: Sequence, one: Field, path: tuple[str, ...]
) -> Iterator[Finding]:
    if one.required and not value.items:
        why = f"{'.'.join(path)} is empty"
        yield of.find("missing-field", place, why, "Write one at least.")
    for number, item in enumerate(value.items):
        name = f"{path[-1]}[{number}]"
        if isinstance(item, Block):
            yield from _below(of, item, item.position, one.below or {}, (*path[:-1], name))
        else:
            why = f"{'.'.join(path[:-1])}.{name} is a {item.kind}, and has to be a mapping"
            fix = "Write its fields as keys below it."
            yield of.find("wrong-type", item.position, why, fix)


def _strings(of: Manifest, node: Block, name: str) -> Iterator[Finding]:
    for key, entry in node.entries.items():
        if entry.value.kind not in ("string", "null"):
            seen = f"{name}.{shown(key)} is a {entry.value.kind}"
            why = f"{seen}, and the API server takes strings there alone"
            yield of.find("wrong-type", entry.position, why, _typed(entry.value, "string"))


def _fits(value: Scalar | Sequence | Block, wanted: str) -> bool:
    match wanted:
        case "integer":
            return isinstance(value, Scalar) and value.integer is not None
        case "strings":
            return value.kind == "mapping"
        case _:
            return value.kind == wanted


def _typed(value: Scalar | Sequence | Block, wanted: str) -> str:
    if isinstance(value, Scalar) and wanted == "string":
        return f'Put it in quotes: "{shown(value.text)}".'
    if isinstance(value, Scalar) and value.kind == "string" and wanted in ("integer", "boolean"):
        return f"Write {_TYPES[wanted]}, without quotes."
    return f"Write {_TYPES[wanted]}."


def _missing(of: Manifest, place: Position, name: str) -> Finding:
    why = f"{name} is missing, and KEDA requires it"
    return of.find("missing-field", place, why, f"Add {name.rpartition('.')[2]}.")


def _nearest(word: str, known: Mapping[str, Field] | tuple[str, ...] | Mapping[str, object]) -> str:
    by_lower_case = {each.lower(): each for each in known}
    near = get_close_matches(word[:100].lower(), by_lower_case, n=1)
    if near:
        return f"Did you mean {by_lower_case[near[0]]}?"
    return f"Known are {', '.join(known)}."


def _bounds(of: Manifest) -> Iterator[Finding]:
    least, most, idle = of.minimum, of.maximum, of.node.integer("spec", "idleReplicaCount")
    # A count that is refused by itself is one finding already.
    if least > most >= 1:
        why = f"minReplicaCount {least} is above maxReplicaCount {most}: KEDA refuses the object"
        place = of.node.place("spec", "minReplicaCount")
        yield of.find("replica-bounds", place, why, f"Write {most} at most.")
    if idle is not None and idle != 0:
        why = f"idleReplicaCount is {idle}, and KEDA supports only 0"
        place = of.node.place("spec", "idleReplicaCount")
        yield of.find("replica-bounds", place, why, "Write 0, or remove it.")
    elif idle is not None and idle >= least >= 0:
        why = f"idleReplicaCount is not below minReplicaCount {least}: KEDA refuses the object"
        place = of.node.place("spec", "idleReplicaCount")
        yield of.find("replica-bounds", place, why, "Remove it, or make minReplicaCount 1 or more.")


def _name(of: Manifest) -> Iterator[Finding]:
    path = ("spec", "advanced", "horizontalPodAutoscalerConfig", "name")
    if len(of.name) > _LONGEST_NAME and not of.node.text(*path):
        why = (
            f"the name has {len(of.name)} characters, and KEDA calls the HPA keda-hpa- and the "
            "name, of which its admission webhook takes 63"
        )
        fix = "Shorten it to 54, or set advanced.horizontalPodAutoscalerConfig.name."
        yield of.find("name-too-long", of.node.place("metadata", "name"), why, fix)
