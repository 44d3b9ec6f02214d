"""How Kubernetes names pods, written a second time: as texts with blanks, and not as regexes.

Nothing is shared with the product's regular expressions. A form is cut like any text; filled in, it
is a pod's name, and a name is compared with it character by character.
"""

import hashlib
import itertools
from collections.abc import Iterator
from functools import lru_cache

from hypothesis import strategies as st

from keda_gpu_scaler.spec.workload import Kind

_HASH, _DIGIT, _FIRST_DIGIT, _HEX, _RANDOM = "#?!%*"
_RANDOM_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_BLANKS = {
    # Each decimal digit of a hash is encoded in the alphabet of random names.
    _HASH: frozenset(_RANDOM_ALPHABET[ord(digit) % 27] for digit in "0123456789"),
    _DIGIT: frozenset("0123456789"),
    _FIRST_DIGIT: frozenset("123456789"),
    _HEX: frozenset("0123456789abcdef"),
    _RANDOM: frozenset(_RANDOM_ALPHABET),
}
_LONGEST_BASE, _LONGEST_LABEL = 58, 63
_NUMBERED = {Kind.STATEFUL_SET: 1, Kind.LEADER_WORKER_SET: 2}
"""How many numbers a pod's name may end with, where it ends with numbers."""


def names(low: int = 1, high: int = 253) -> st.SearchStrategy[str]:
    """Object names of these lengths: letters, digits, inner dashes and dots."""
    ends = st.text("abcdeftz049", min_size=1, max_size=1)
    inner = st.text("abcdefghz0123456789-", min_size=max(low - 2, 0), max_size=high - 2)
    whole = st.builds(lambda first, middle, last: first + middle + last, ends, inner, ends)
    dotted = st.builds(lambda a, b: f"{a}.{b}", ends, whole).filter(lambda name: len(name) <= high)
    return whole | dotted if low > 1 else ends | whole | dotted


_ROLES = ("prefill", "decode", "p-0", "7", "longest-role")
"""What roles of a ModelServing may be called, with 12 characters at most."""


@st.composite
def pods(draw: st.DrawFn, kind: Kind, name: str) -> str:
    """A pod of the owner of this kind and name."""
    if kind is Kind.MODEL_SERVING:
        group, role, number, pod = (
            draw(st.integers(0, 12)),
            draw(st.sampled_from(_ROLES)),
            draw(st.integers(0, 3)),
            draw(st.integers(0, 12)),
        )
        return f"{name}-{group}-{role}-{number}-{pod}"
    if kind in _NUMBERED:
        worker = draw(st.just(0) | st.integers(0, 99)) if _NUMBERED[kind] > 1 else 0
        return f"{name}-{draw(st.integers(0, 5000))}" + (f"-{worker}" if worker else "")
    form = draw(st.sampled_from(list(_forms(kind, name))))
    filled = ""
    for character, run in itertools.groupby(form):
        count = len(list(run))
        blank = sorted(_BLANKS.get(character, character))
        filled += draw(st.text(blank, min_size=count, max_size=count))
    return filled


def examples(kind: Kind, name: str) -> Iterator[str]:
    """Yield pods of the owner: those of each form with its first and its last characters."""
    if kind is Kind.MODEL_SERVING:
        yield from (f"{name}-{rest}" for rest in ("0-7-0-0", "10-longest-role-3-12"))
    elif kind in _NUMBERED:
        yield from (f"{name}-{rest}" for rest in ("0", "10", "0-1", "9-10")[: 2 * _NUMBERED[kind]])
    else:
        for form, end in itertools.product(_forms(kind, name), (min, max)):
            yield "".join(end(_BLANKS.get(character, character)) for character in form)


def could_be(kind: Kind, name: str, pod: str) -> bool:
    """Tell whether a pod of this name can belong to the workload of this kind and name."""
    if kind is Kind.MODEL_SERVING:
        return _is_in_group(pod, name)
    if kind in _NUMBERED:
        return _is_numbered(pod, name, _NUMBERED[kind])
    return any(_fits(pod, form) for form in _forms_of_all_pods(kind, name))


def _is_numbered(pod: str, name: str, depth: int) -> bool:
    numbers = pod.removeprefix(f"{name}-").split("-") if pod.startswith(f"{name}-") else []
    plain = all(map(_is_number, numbers))
    return plain and 1 <= len(numbers) <= depth and "0" not in numbers[1:]


def _is_in_group(pod: str, name: str) -> bool:
    """Tell whether a ModelServing calls a pod so: its group, a role, the role's number, its own."""
    parts = pod.removeprefix(f"{name}-").split("-") if pod.startswith(f"{name}-") else []
    role = "-".join(parts[1:-2])
    ends = all(map(_is_number, (parts[0], *parts[-2:]))) if len(parts) > 3 else False
    return ends and 1 <= len(role) <= 12 and "-" not in (role[0], role[-1]) and "." not in role


def _is_number(text: str) -> bool:
    return text.isdecimal() and str(int(text)) == text


def _fits(pod: str, form: str) -> bool:
    return len(pod) == len(form) and all(
        shown in _BLANKS.get(meant, meant) for shown, meant in zip(pod, form, strict=True)
    )


@lru_cache(100)
def _forms_of_all_pods(kind: Kind, name: str) -> tuple[str, ...]:
    return tuple(_forms(kind, name))


def _forms(kind: Kind, name: str) -> Iterator[str]:
    match kind:
        case Kind.DEPLOYMENT | Kind.ROLLOUT:
            yield from _deployment(name)
        case Kind.REPLICA_SET | Kind.DAEMON_SET | Kind.POD_CLIQUE:
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
    """What the API server makes of `generateName`."""
    return base[:_LONGEST_BASE] + _RANDOM * 5


def _deployment(name: str) -> Iterator[str]:
    for length in range(1, 11):
        yield _generated(f"{name}-{_HASH * length}-")


def _job(name: str) -> Iterator[str]:
    """A pod of a Job, Indexed or not."""
    yield _generated(f"{name}-")
    for digits in range(1, 11):
        index = _DIGIT if digits == 1 else _FIRST_DIGIT + _DIGIT * (digits - 1)
        yield f"{name[: _LONGEST_BASE - digits - 2]}-{index}-{_RANDOM * 5}"


def _knative(name: str) -> Iterator[str]:
    """A pod of a revision that Knative named."""
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    revision = _child(name, f"-{_DIGIT * 5}", digest)
    yield from _deployment(_child(revision, "-deployment", _HEX * 32))


def _child(parent: str, suffix: str, digest: str) -> str:
    if len(parent) + len(suffix) <= _LONGEST_LABEL:
        return parent + suffix
    return parent[: _LONGEST_LABEL - len(digest) - len(suffix)] + digest + suffix
