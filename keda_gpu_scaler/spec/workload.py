"""The measured workload; its pods are found by owner, by name or by label selector. Pure.

A workload is written in kubectl's notation. Its pods are found by their owners where the cluster
names them (the controlling owner of a pod, and that owner's controlling owner), and otherwise by
the names that Kubernetes gives them. Whether a pod exists or is Ready is not known here.

A scale target with no rule for names or owners has the pods that its label selector selects. Only
the Kubernetes API can say which pods these are; each of them then has the target among its owners,
under a kind that no object has.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import pod_names


class Kind(StrEnum):
    """A kind of owner that names its pods by a rule."""

    DEPLOYMENT = "deployment"
    STATEFUL_SET = "statefulset"
    REPLICA_SET = "replicaset"
    ROLLOUT = "rollout"
    LEADER_WORKER_SET = "leaderworkerset"
    MODEL_SERVING = "modelserving"
    POD_CLIQUE = "podclique"
    INFERENCE_SERVICE = "inferenceservice"
    KNATIVE_SERVICE = "ksvc"
    DAEMON_SET = "daemonset"
    JOB = "job"
    CRON_JOB = "cronjob"


class _Rule(NamedTuple):
    """What a kind is called, and how its pods are."""

    group: str
    """Its API group."""
    short_name: str
    forms: Callable[[str], Iterator[pod_names.Form]]
    """Yields the forms of its pods' names."""
    owner: str | None
    """The kind in the owner references of its pods; None: it owns by objects of other names."""
    between: str | None = None
    """The kind of object between such a workload and its pods."""
    is_grouped: bool = False
    """A replica is a group of pods, by the number that follows the workload's name in theirs."""


_RULES = {
    Kind.DEPLOYMENT: _Rule("apps", "deploy", pod_names.of_deployment, "Deployment", "ReplicaSet"),
    Kind.STATEFUL_SET: _Rule("apps", "sts", pod_names.of_stateful_set, "StatefulSet"),
    Kind.REPLICA_SET: _Rule("apps", "rs", pod_names.of_set, "ReplicaSet"),
    Kind.ROLLOUT: _Rule("argoproj.io", "ro", pod_names.of_deployment, "Rollout", "ReplicaSet"),
    Kind.LEADER_WORKER_SET: _Rule(  # its leaders belong to a StatefulSet of the same name
        "leaderworkerset.x-k8s.io",
        "lws",
        pod_names.of_leader_worker_set,
        "StatefulSet",
        is_grouped=True,
    ),
    Kind.MODEL_SERVING: _Rule(
        "workload.serving.volcano.sh",
        "",
        pod_names.of_model_serving,
        "ModelServing",
        is_grouped=True,
    ),
    Kind.POD_CLIQUE: _Rule("grove.io", "pclq", pod_names.of_set, "PodClique"),
    Kind.INFERENCE_SERVICE: _Rule(
        "serving.kserve.io", "isvc", pod_names.of_inference_service, None
    ),
    Kind.KNATIVE_SERVICE: _Rule(
        "serving.knative.dev", "kservice", pod_names.of_knative_service, None
    ),
    Kind.DAEMON_SET: _Rule("apps", "ds", pod_names.of_set, "DaemonSet"),
    Kind.JOB: _Rule("batch", "", pod_names.of_job, "Job"),
    Kind.CRON_JOB: _Rule("batch", "cj", pod_names.of_cron_job, "CronJob", "Job"),
}
BETWEEN = {kind: rule.between for kind, rule in _RULES.items() if rule.between}
_DEPLOYMENTS_BY_NAME = {"production-stack.vllm.ai": ("vllmruntime", "vllmruntimes", "vr")}
"""Words, by API group, for a kind of which each object has a Deployment of its own name."""
_KNATIVE_WORDS = ("service", "services")
"""Knative's words for its services; without its API group they mean Kubernetes' own Service."""


def _kinds_by_alias() -> dict[str, Kind]:
    aliases = {}
    for kind, rule in _RULES.items():
        for word in filter(None, (kind.value, f"{kind.value}s", rule.short_name)):
            aliases[word] = aliases[f"{word}.{rule.group}"] = kind
    for group, words in _DEPLOYMENTS_BY_NAME.items():
        for word in words:
            aliases[word] = aliases[f"{word}.{group}"] = Kind.DEPLOYMENT
    for word in _KNATIVE_WORDS:
        aliases[f"{word}.serving.knative.dev"] = Kind.KNATIVE_SERVICE
    return aliases


KINDS_BY_ALIAS = _kinds_by_alias()
"""Every word for a kind: singular, plural and short name, each alone and with its API group."""


def parse_kind(text: str) -> Kind:
    """Return the kind that kubectl would take `text` for, whatever its case."""
    kind = KINDS_BY_ALIAS.get(text.lower())
    if kind is None:
        word, hint = text.lower(), ""
        if word in {*_KNATIVE_WORDS, "svc"}:
            hint = " (a Service has no pods of its own; a Knative service is a ksvc)"
        elif meant := errors.nearest(word, KINDS_BY_ALIAS):
            hint = f" (did you mean {meant}?)"
        else:
            hint = " (a namespace has a key of its own)"
        raise ValueError(f"a kind out of {', '.join(Kind)}{hint}")
    return kind


def kind_of_target(group: str, kind: str) -> Kind | None:
    return KINDS_BY_ALIAS.get(f"{kind}.{group}".lower())


class Owner(NamedTuple):
    """What controls a pod, in Kubernetes' words: the kind and the name."""

    kind: str
    name: str


NO_NAME = "[^[:ascii:][:^ascii:]]"
"""RE2 text that matches nothing."""


class PodSelector:
    """Exactly the pods of one workload, as a PromQL text and as the same test in this process.

    By itself it has no pods: each kind of selector says how its pods are found.
    """

    __slots__ = ()

    namespace: str
    """The one namespace the pods live in."""

    @property
    def prefix(self) -> str:
        """The prefix of every matching pod name; empty when it is not known."""
        return ""

    @property
    def regex(self) -> str:
        """RE2 text that matches the whole pod name, as Prometheus anchors it."""
        return NO_NAME

    @property
    def group_regex(self) -> str:
        """RE2 text for a pod's name, with its group as the first part; empty: pods have none."""
        return ""

    @property
    def owner(self) -> Owner | None:
        """The owner that has the workload's replica count; None where no such owner is known."""
        return None

    def matches(self, _pod: str) -> bool:
        """Tell whether the pod of this name belongs to the workload."""
        return False

    def owns(self, _above: frozenset[Owner]) -> bool | None:
        """Tell whether a pod with these owners is the workload's; None: only its name can tell."""
        return False

    def leader_of(self, _above: frozenset[Owner]) -> str | None:
        """Name the pod that has to be the workload's for one with these owners to be so."""
        return None

    def replica_of(self, pod: str, _above: frozenset[Owner]) -> str:
        """Name the replica that a pod with these owners is part of: itself, or its group."""
        return pod


@dataclass(frozen=True, slots=True)
class ScaleTarget(PodSelector):
    """A placeholder without pods, until it is known what the ScaledObject scales.

    A trigger without `workload` has it. The Kubernetes API resolves it to a workload before
    anything is decided.
    """

    namespace: str

    def __str__(self) -> str:
        return "the scale target"


NO_OWNER = Owner("", "")
"""The owner of an object that is known to have none."""


@dataclass(frozen=True, slots=True)
class Selected(PodSelector):
    """Exactly the pods that the label selector of one scale target selects.

    Neither names nor any other evidence can tell them: while the Kubernetes API does not say which
    pods the target selects, nothing is known of the workload (`load.are_pods_known`).
    """

    namespace: str
    resource: str
    """The target's resource, as kubectl calls it: `models.example.com`."""
    name: str

    def __str__(self) -> str:
        return f"{self.resource}/{self.name}"

    @property
    def selected_by(self) -> Owner:
        """The owner that marks the pods it selects; no real kind has a slash in its name."""
        return Owner(f"{self.resource}/scale", self.name)

    @property
    def replica_kind(self) -> str:
        """The kind of the owner that names the replica, where one is a group of pods."""
        return f"{self.resource}/replica"

    def owns(self, above: frozenset[Owner]) -> bool:
        """Tell whether the target selects a pod with these owners."""
        return self.selected_by in above

    def replica_of(self, pod: str, above: frozenset[Owner]) -> str:
        kind = self.replica_kind
        return next((owner.name for owner in above if owner.kind == kind), pod)


_NAME_LIMIT = 253
_LABEL_LIMIT = 63
_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_IS_LABEL = re.compile(_LABEL)
_IS_NAME = re.compile(rf"{_LABEL}(?:[.]{_LABEL})*")
_WORKLOADS_KEPT = 12_000
"""The pod names of so many take 32 MiB at most, and 6 MiB of usual ones; to make those of one again
takes a hundredth of a millisecond."""
_PATTERN_MEMORY_BYTES = 128 * 1024
"""Bounds the memory of a user's pattern, compiled and while it matches: 4,500 characters fit, and
the worst pattern found takes 8 ms for a name of 253 characters."""
_PATTERNS_KEPT = 256
"""Together 32 MiB at most; to compile a usual one again takes a tenth of a millisecond."""


def is_name(text: str) -> bool:
    """Tell whether `text` can be the name of a Kubernetes object (a DNS-1123 subdomain)."""
    return len(text) <= _NAME_LIMIT and _IS_NAME.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    return len(text) <= _LABEL_LIMIT and _IS_LABEL.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Workload(PodSelector):
    """An owner of pods, and its pods by name.

    Names alone cannot tell some owners apart. Pods of these other owners match as well:

    - a Deployment and a Rollout of the same name, or a DaemonSet, ReplicaSet, PodClique and Job of
      the same name, or a StatefulSet and a LeaderWorkerSet of the same name;
    - owners that share what is left of their pod names after the cut: 58 characters, or fewer
      before a hash, an index or the MD5 in the pod names of a long Knative service;
    - an owner named like this one plus a dash and what may follow in its pods' names: hash
      characters (DaemonSet `bert-9c` for Deployment `bert`) or numbers (StatefulSet `bert-2` for
      LeaderWorkerSet `bert`, Job `bert-2` for the indexed Job `bert`), or what a ModelServing adds
      (StatefulSet `bert-2-decode-0` for ModelServing `bert`).
    """

    kind: Kind
    namespace: str
    name: str

    def __post_init__(self) -> None:
        """Refuse a name that no object can have: it would become part of a regular expression."""
        if not is_name(self.name):
            raise ValueError(
                "a Kubernetes name: lower-case letters, digits, '-' and '.', a letter or digit at "
                f"both ends, at most {_NAME_LIMIT} characters"
            )

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def prefix(self) -> str:
        return _names(self.kind, self.name).prefix

    @property
    def regex(self) -> str:
        return _names(self.kind, self.name).regex

    def matches(self, pod: str) -> bool:
        return _names(self.kind, self.name).match(pod)

    @property
    def owner(self) -> Owner | None:
        """The owner that has the replica count; None where its name follows another rule."""
        kind = _RULES[self.kind].owner
        return None if kind is None else Owner(kind, self.name)

    def owns(self, above: frozenset[Owner]) -> bool | None:
        """Tell whether a pod with these owners is the workload's; None: only its name can tell.

        Only the name can tell where the owner of a ReplicaSet or a Job is not known.
        """
        owner = self.owner
        if owner is None:
            return None
        if owner in above:
            return True
        if self.kind is Kind.LEADER_WORKER_SET:
            return self.leader_of(above) is not None
        is_open = {other.kind for other in above} == {_RULES[self.kind].between}
        return None if is_open else False

    def leader_of(self, above: frozenset[Owner]) -> str | None:
        """Name the leader of a LeaderWorkerSet's group: that of its workers' StatefulSet.

        Another LeaderWorkerSet can have this name, and its leaders are then no workers of this one.
        """
        if self.kind is not Kind.LEADER_WORKER_SET or self.owner in above:
            return None
        prefix = f"{self.name}-"
        names = (owner.name for owner in above if owner.kind == "StatefulSet")
        return next((name for name in names if name.removeprefix(prefix).isdecimal()), None)

    @property
    def is_grouped(self) -> bool:
        """Whether one of its replicas is a group of pods."""
        return _RULES[self.kind].is_grouped

    @property
    def group_regex(self) -> str:
        if not self.is_grouped:
            return ""
        return f"({self.prefix.replace('.', '[.]')}[0-9]+)(-.*)?"

    def replica_of(self, pod: str, _above: frozenset[Owner]) -> str:
        """Name the pod's group, as the leader in a LeaderWorkerSet is called, else the pod."""
        if not self.is_grouped or not self.matches(pod):
            return pod
        return self.prefix + pod.removeprefix(self.prefix).partition("-")[0]


@dataclass(frozen=True, slots=True)
class PodPattern(PodSelector):
    """The pods with names that match a user's RE2 pattern as a whole; each is a replica."""

    namespace: str
    pattern: str

    def __post_init__(self) -> None:
        """Refuse a pattern that RE2 refuses, alone or anchored as Prometheus anchors it."""
        if not (self.pattern and self.pattern.isascii()):
            raise ValueError("an RE2 pattern for whole pod names, in ASCII, such as bert-[0-9]+")
        _compiled(self.pattern)

    def __str__(self) -> str:
        return self.pattern

    @property
    def prefix(self) -> str:
        return _prefix(self.pattern)

    @property
    def regex(self) -> str:
        return self.pattern

    def matches(self, pod: str) -> bool:
        return _compiled(self.pattern).fullmatch(pod) is not None

    def owns(self, _above: frozenset[Owner]) -> bool | None:
        """Return None: the name decides, as the user asked; the owners may be many."""
        return None


def parse(text: str, namespace: str) -> Workload:
    """Return the workload that `[kind/]name` names; a bare name is a Deployment."""
    kind, slash, name = text.rpartition("/")
    if kind not in KINDS_BY_ALIAS and kind.partition("/")[0] == namespace:
        raise ValueError(
            "a name, or a kind before the slash, such as deployment/bert; a namespace has a key of "
            "its own, namespace"
        )
    return Workload(parse_kind(kind) if slash else Kind.DEPLOYMENT, namespace, name)


@lru_cache(_WORKLOADS_KEPT)
def _names(kind: Kind, name: str) -> pod_names.PodNames:
    return pod_names.union(_RULES[kind].forms(name))


@lru_cache(_PATTERNS_KEPT)
def _compiled(pattern: str) -> Any:  # noqa: ANN401  re2 has no types
    import re2  # noqa: PLC0415 - it takes a MiB, and few triggers have a pattern

    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.never_capture = True  # with groups, a match takes a time that grows with their number
    options.log_errors = False
    try:
        re2.compile(pattern, options)  # `a)|(b` is whole only within the anchors' own group
        return re2.compile(f"^(?:{pattern})$", options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace").partition(":")[0]
        raise ValueError(
            f"an RE2 pattern such as bert-[0-9]+, and no glob; RE2 says: {why}"
        ) from error


@lru_cache(_PATTERNS_KEPT)
def _prefix(pattern: str) -> str:
    import re2  # noqa: PLC0415 - as above

    try:
        lowest, highest = _compiled(pattern).possiblematchrange(_NAME_LIMIT)
    except re2.error:
        return ""
    return pod_names.shared_prefix([lowest.decode("latin-1"), highest.decode("latin-1")])
