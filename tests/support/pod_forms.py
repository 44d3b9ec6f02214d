"""Whether a pod's name can be a workload's: Kubernetes' forms once more, as texts with blanks.

Ground truth where only names identify a pod's owner. Nothing is shared with the product's regular
expressions: a form is cut like any text, and compared with a name character by character.
"""

import hashlib
from collections.abc import Iterator

from keda_gpu_scaler.spec.workload import Kind

_HASH, _DIGIT, _FIRST_DIGIT, _HEX, _RANDOM = "#?!%*"
_BLANKS = {
    _HASH: frozenset("456789bcdf"),
    _DIGIT: frozenset("0123456789"),
    _FIRST_DIGIT: frozenset("123456789"),
    _HEX: frozenset("0123456789abcdef"),
    _RANDOM: frozenset("bcdfghjklmnpqrstvwxz2456789"),
}
_LONGEST_BASE = 58
_LONGEST_LABEL = 63


def could_be(kind: Kind, name: str, pod: str) -> bool:
    """Tell whether a pod of this name can belong to the workload of this kind and name."""
    if kind in {Kind.STATEFUL_SET, Kind.LEADER_WORKER_SET}:
        return _is_numbered(pod, name, 1 + (kind is Kind.LEADER_WORKER_SET))
    return any(_fits(pod, form) for form in _forms(kind, name))


def _is_numbered(pod: str, name: str, depth: int) -> bool:
    numbers = pod.removeprefix(f"{name}-").split("-") if pod.startswith(f"{name}-") else []
    plain = all(text.isdecimal() and str(int(text)) == text for text in numbers)
    return plain and 1 <= len(numbers) <= depth and "0" not in numbers[1:]


def _fits(pod: str, form: str) -> bool:
    return len(pod) == len(form) and all(
        shown in _BLANKS.get(meant, meant) for shown, meant in zip(pod, form, strict=True)
    )


def _forms(kind: Kind, name: str) -> Iterator[str]:
    match kind:
        case Kind.DEPLOYMENT | Kind.ROLLOUT:
            yield from _deployment(name)
        case Kind.REPLICA_SET | Kind.DAEMON_SET:
            yield _generated(f"{name}-")
        case Kind.JOB:
            yield from _job(name)
        case Kind.CRON_JOB:
            yield from _job(f"{name}-{_DIGIT * 8}")
        case Kind.KNATIVE_SERVICE:
            yield from _knative(name)
        case _:
            for predictor in (f"{name}-predictor", f"{name}-predictor-default"):
                yield from _deployment(predictor)
                yield from _knative(predictor)


def _generated(base: str) -> str:
    return base[:_LONGEST_BASE] + _RANDOM * 5


def _deployment(name: str) -> Iterator[str]:
    for length in range(1, 11):
        yield _generated(f"{name}-{_HASH * length}-")


def _job(name: str) -> Iterator[str]:
    yield _generated(f"{name}-")
    for digits in range(1, 11):
        index = _DIGIT if digits == 1 else _FIRST_DIGIT + _DIGIT * (digits - 1)
        yield f"{name[: _LONGEST_BASE - digits - 2]}-{index}-{_RANDOM * 5}"


def _knative(name: str) -> Iterator[str]:
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    revision = _child(name, f"-{_DIGIT * 5}", digest)
    yield from _deployment(_child(revision, "-deployment", _HEX * 32))


def _child(parent: str, suffix: str, digest: str) -> str:
    if len(parent) + len(suffix) <= _LONGEST_LABEL:
        return parent + suffix
    return parent[: _LONGEST_LABEL - len(digest) - len(suffix)] + digest + suffix
