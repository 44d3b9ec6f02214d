"""The kinds of owners with a rule for their pods' names, and kubectl's words for each kind.

Pure. The words are kubectl's: `deploy`, `deployments.apps`, `StatefulSet`. A kind that is not here
has no such rule; use `podPattern` for its pods.
"""

from difflib import get_close_matches
from enum import StrEnum


class Kind(StrEnum):
    """A kind of owner that names its pods by a rule."""

    DEPLOYMENT = "deployment"
    STATEFUL_SET = "statefulset"
    REPLICA_SET = "replicaset"
    ROLLOUT = "rollout"
    LEADER_WORKER_SET = "leaderworkerset"
    INFERENCE_SERVICE = "inferenceservice"
    KNATIVE_SERVICE = "ksvc"
    DAEMON_SET = "daemonset"
    JOB = "job"
    CRON_JOB = "cronjob"


_GROUP_AND_SHORT_NAMES = {
    Kind.DEPLOYMENT: ("apps", "deploy"),
    Kind.STATEFUL_SET: ("apps", "sts"),
    Kind.REPLICA_SET: ("apps", "rs"),
    Kind.ROLLOUT: ("argoproj.io", "ro"),
    Kind.LEADER_WORKER_SET: ("leaderworkerset.x-k8s.io", "lws"),
    Kind.INFERENCE_SERVICE: ("serving.kserve.io", "isvc"),
    Kind.KNATIVE_SERVICE: ("serving.knative.dev", "kservice"),
    Kind.DAEMON_SET: ("apps", "ds"),
    Kind.JOB: ("batch",),
    Kind.CRON_JOB: ("batch", "cj"),
}
_KNATIVE_WORDS = ("service", "services")
"""Knative's words for its services; without its API group they mean Kubernetes' own Service."""


def _kinds_by_alias() -> dict[str, Kind]:
    aliases = {}
    for kind, (group, *short_names) in _GROUP_AND_SHORT_NAMES.items():
        for word in (kind.value, f"{kind.value}s", *short_names):
            aliases[word] = aliases[f"{word}.{group}"] = kind
    for word in _KNATIVE_WORDS:
        aliases[f"{word}.serving.knative.dev"] = Kind.KNATIVE_SERVICE
    return aliases


KINDS_BY_ALIAS = _kinds_by_alias()
"""Every word for a kind: singular, plural and short name, each alone and with its API group."""


def parse(text: str) -> Kind:
    """Return the kind that kubectl would take `text` for, whatever its case."""
    kind = KINDS_BY_ALIAS.get(text.lower())
    if kind is None:
        raise ValueError(f"a kind out of {', '.join(Kind)}{_hint(text.lower()[:100])}")
    return kind


def of_target(group: str, kind: str) -> Kind | None:
    return KINDS_BY_ALIAS.get(f"{kind}.{group}".lower())


def _hint(word: str) -> str:
    if word in {*_KNATIVE_WORDS, "svc"}:
        return " (a Service has no pods of its own; a Knative service is a ksvc)"
    nearest = get_close_matches(word, KINDS_BY_ALIAS, n=1)
    return f" (did you mean {nearest[0]}?)" if nearest else ""
