"""Documents → the objects in them, and the triggers that are for this scaler. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.errors import Mistake
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import Aggregation, ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import Workload
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS
from keda_gpu_scaler.workbench.check import formulas
from keda_gpu_scaler.workbench.check.documents import Entry, Node, Position, shown

MODIFIERS = ("spec", "advanced", "scalingModifiers")
BEHAVIOR = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")
EXTERNAL = frozenset({"external", "external-push"})
OUR_NAME = "gpu-scaler"
_OUR_KEYS = frozenset(
    {"workload", "podPattern", "demandQuery", "demandPreset", "activationWorkload"}
)
"""Keys that other external scalers hardly have."""
EXTERNAL_KEYS = _OUR_KEYS | {"scalerAddress"}
"""Keys that no other trigger of KEDA's has."""
_NAMESAKES_KEYS = frozenset(
    {
        *("targetGpuUtilization", "targetMemoryUtilization", "targetValue", "gpuIndex"),
        *("pollIntervalSeconds", "vllmEndpoint", "tritonEndpoint"),
    }
)
_NAMESAKES_VALUES = re.compile(
    "(vllm|tgi|triton)-(inference|queue-depth|queue-wait|request-rate)|ollama|batch"
    "|(distributed-)?training|(gpu|memory|pcie|nvlink|vllm|triton)_[a-z_]+|temperature|power_draw"
)
"""Of `profile` and `metricType`, in the metadata of pmady/keda-gpu-scaler."""
_GROUP = {"kind": "LeaderWorkerSet", "apiVersion": "leaderworkerset.x-k8s.io/v1"}
_LONGEST = 63
"""Of the name of what KServe writes."""
_SELECT = re.compile(r"\s*select\s", re.IGNORECASE)


class Parsed(NamedTuple):
    """What a trigger asks for, as far as its text says."""

    spec: TriggerSpec | None
    """None if it is wrong, or rests on values of the environment."""
    mistakes: tuple[Mistake, ...]
    """None of them is about a value of the environment."""


@dataclass(frozen=True)
class Manifest:
    """One Kubernetes object."""

    file: str
    node: Node
    default_namespace: str
    """The namespace of an object that names none, as for kubectl."""
    workloads: frozenset[Workload] = frozenset()
    """Those in the same files."""

    @property
    def workload(self) -> Workload | None:
        """The workload that the object is, if it is one."""
        kind, name = workload.KINDS_BY_ALIAS.get(self.kind.lower()), self.scaled_object.name
        if kind is None or not workload.is_name(name):
            return None
        return Workload(kind, self.namespace, name)

    @property
    def kind(self) -> str:
        return self.node.text("kind")

    @property
    def namespace(self) -> str:
        return self.node.text("metadata", "namespace") or self.default_namespace

    @property
    def scaled_object(self) -> ScaledObject:
        return ScaledObject(self.namespace, self.node.text("metadata", "name"))

    @property
    def subject(self) -> str:
        return shown(f"{self.kind} {self.scaled_object}")

    @cached_property
    def triggers(self) -> "tuple[Trigger, ...]":
        return tuple(Trigger(self, node) for node in self.node.blocks("spec", "triggers"))

    @cached_property
    def ours(self) -> "tuple[Trigger, ...]":
        return tuple(trigger for trigger in self.triggers if trigger.is_ours)

    @property
    def accepted(self) -> "tuple[tuple[Trigger, TriggerSpec], ...]":
        """The triggers for this scaler that it would accept, and what they ask for."""
        pairs = ((trigger, trigger.spec) for trigger in self.ours)
        return tuple((trigger, spec) for trigger, spec in pairs if spec is not None)

    @property
    def is_whole(self) -> bool:
        """Whether it can be applied by itself; a patch of Kustomize is a part of one."""
        return bool(self.triggers) and self.node.has("spec", "scaleTargetRef", "name")

    @property
    def minimum(self) -> int:
        return self.node.integer("spec", "minReplicaCount") or 0

    @property
    def maximum(self) -> int:
        written = self.node.integer("spec", "maxReplicaCount")
        return 100 if written is None else written

    @property
    def goes_to_zero(self) -> bool:
        """Whether KEDA may take the last replica."""
        return self.minimum == 0 or self.node.integer("spec", "idleReplicaCount") == 0

    @property
    def formula(self) -> str:
        """The formula of scalingModifiers, which makes one number of all triggers; empty: none."""
        return self.node.text(*MODIFIERS, "formula")

    @cached_property
    def is_formula_of_ours(self) -> bool:
        """Whether the formula is arithmetic with numbers and triggers for this scaler only."""
        ones = {trigger.name: 1.0 for trigger in self.ours}
        return formulas.value(self.formula, ones) is not None


@dataclass(frozen=True)
class Trigger:
    """One entry of `triggers`."""

    of: Manifest
    node: Node

    @property
    def type(self) -> str:
        return self.node.text("type")

    @property
    def name(self) -> str:
        return self.node.text("name")

    @property
    def average(self) -> bool:
        """Whether the HPA divides by the replicas, which is KEDA's default.

        With a formula KEDA ignores the metricType of its triggers.
        """
        where, keys = (self.of.node, MODIFIERS) if self.of.formula else (self.node, ())
        return where.text(*keys, "metricType") != "Value"

    @property
    def metric_type_place(self) -> Position:
        modifiers = (*MODIFIERS, "metricType")
        return self.of.node.place(*modifiers) if self.of.formula else self.node.place("metricType")

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        """The strings that KEDA forwards."""
        entries = self.node.block("metadata").entries
        return {
            key: entry.value.scalar
            for key, entry in entries.items()
            if entry.value.kind not in ("list", "mapping", "null")
        }

    @property
    def is_ours(self) -> bool:
        """Whether it asks this scaler, as far as its address or its keys tell."""
        if self.type not in EXTERNAL or self.namesakes_keys:
            return False
        address = self.metadata.get("scalerAddress", "")
        return OUR_NAME in address or not _OUR_KEYS.isdisjoint(self.metadata)

    @cached_property
    def namesakes_keys(self) -> tuple[str, ...]:
        """The keys that show that it is another project's, which has this scaler's name."""
        if OUR_NAME not in self.metadata.get("scalerAddress", "") or _OUR_KEYS & {*self.metadata}:
            return ()
        return tuple(
            key
            for key, text in self.metadata.items()
            if key in _NAMESAKES_KEYS
            or (key in {"profile", "metricType"} and _NAMESAKES_VALUES.fullmatch(text))
        )

    @property
    def aggregation(self) -> str | None:
        """How it makes one number of the replicas; None: unknown here."""
        if "aggregationFromEnv" in self.metadata:
            return None
        return self.metadata.get("aggregation", Aggregation.SUM).strip()

    @property
    def for_formula(self) -> bool:
        """Whether its polls are for a formula, as far as its text says."""
        written = self.metadata.get("forFormula", "").strip()
        return written == "true" or "forFormulaFromEnv" in self.metadata

    def place(self, *keys: str) -> Position:
        """Return where the first of these keys of the metadata is; without any, the metadata."""
        given = [key for key in keys if key in self.node.block("metadata").entries]
        return self.node.place("metadata", *given[:1])

    @cached_property
    def from_env(self) -> tuple[str, ...]:
        """The keys whose values KEDA takes from the environment: the text has only their names."""
        return tuple(
            key
            for key in self.metadata
            if key.endswith(FROM_ENV) and key.removesuffix(FROM_ENV) in KEYS
        )

    def parse(self, access: Access, scaled_object: ScaledObject | None = None) -> Parsed:
        """Return what the scaler would read of it, where ScaledObjects are allowed this much."""
        try:
            spec = trigger.parse(scaled_object or self.of.scaled_object, self.metadata, access)
        except errors.SpecError as wrong:
            known = (mistake for mistake in wrong.mistakes if mistake.key not in self.from_env)
            return Parsed(None, tuple(known))
        return Parsed(None if self.from_env else spec, ())

    @property
    def spec(self) -> TriggerSpec | None:
        """What it asks for, whatever the settings of the scaler allow."""
        return self._parsed.spec

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """What the scaler refuses, whatever its settings are."""
        return self._parsed.mistakes

    @cached_property
    def _parsed(self) -> Parsed:
        # A wrong name is not about the trigger; in a template it is often a placeholder.
        namespace, name = self.of.scaled_object
        scaled_object = ScaledObject(
            namespace if workload.is_namespace(namespace) else "default",
            name if workload.is_name(name) else "unnamed",
        )
        # The settings are not known here: there is whatever source the trigger names.
        sources = frozenset({self.metadata.get("source", "default").strip()})
        is_influxql = _SELECT.match(self.metadata.get("demandQuery", ""))
        everything = Access(
            dict.fromkeys(sources, EVERY_NAMESPACE),
            others=EVERY_NAMESPACE,
            own_promql=Policy.ALLOW,
            knows_targets=True,
            influxql_sources=sources if is_influxql else frozenset(),
        )
        return self.parse(everything, scaled_object)


def manifests(file: str, document: Node, namespace: str) -> list[Manifest]:
    """Return the object of a document, or those in its list as kubectl or the API prints it."""
    is_list = document.text("kind").endswith("List") and document.has("items")
    nodes = document.blocks("items") if is_list else [document]
    nodes = [written for node in nodes for written in (node, *_of_kserve(node))]
    return [Manifest(file, node, namespace) for node in nodes]


def _of_kserve(node: Node) -> Iterator[Node]:
    """Yield the ScaledObjects that KServe writes for an LLMInferenceService, at its positions."""
    name, namespace = (node.text("metadata", key) for key in ("name", "namespace"))
    for role in ((), ("prefill",)) if node.text("kind") == "LLMInferenceService" else ():
        of_role = node.block("spec", *role)
        scaling, at = of_role.block("scaling"), of_role.place("scaling")
        target = {"name": "-".join((name, "kserve", *role))}
        if of_role.has("worker"):
            target = {**_GROUP, "name": "-".join((name, "kserve-mn", *role))}
        spec = {
            **scaling.block("keda").entries,
            # KServe shortens a longer name.
            "scaleTargetRef": _mapping(at, target if len(target["name"]) <= _LONGEST else {}),
            "minReplicaCount": Entry(at, Node(at, "number", "1")),
        }
        for key in ("minReplicas", "maxReplicas"):
            if scaling.has(key):
                spec[f"{key[:-1]}Count"] = scaling.entries[key]
        written = _mapping(at, {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}).value
        names = {"name": "-".join((name, "kserve", *role, "keda")), "namespace": namespace}
        entries = {
            **written.entries,
            "metadata": _mapping(at, names),
            "spec": Entry(at, Node(at, "mapping", entries=spec)),
        }
        if scaling.has("keda"):
            yield Node(at, "mapping", entries=entries)


def _mapping(at: Position, texts: Mapping[str, str]) -> Entry:
    """Return a mapping of texts, all at one position."""
    entries = {key: Entry(at, Node(at, "string", text)) for key, text in texts.items()}
    return Entry(at, Node(at, "mapping", entries=entries))
