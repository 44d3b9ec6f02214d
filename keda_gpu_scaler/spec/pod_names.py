"""The names Kubernetes gives to pods, per kind of owner, as one regular expression each.

Pure text. Most controllers give the API server a base such as `bert-7d9f8c6b5-`; the API server
cuts the base to 58 characters and appends 5 random ones. So a long owner name leaves no room for
the dashes and the hash, and a plain `bert-.*` misses pods and also matches pods of other owners. A
name is kept here as one atom per character, so that it can be cut where Kubernetes cuts it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import NamedTuple

_BASE_LIMIT = 58
_RANDOM = "[b-df-hj-np-tv-xz24-9]{5}"
_HASH = "[4-9bcdf]"
"""A 32-bit hash in decimal, with its ten digits mapped into the random alphabet."""
_HASH_LIMIT = 10
_DIGIT = "[0-9]"
_ORDINAL = "(?:0|[1-9][0-9]*)"
_ROLE = "[a-z0-9](?:[-a-z0-9]{0,10}[a-z0-9])?"
"""The name of a role in a ModelServing has 12 characters at most."""
_INDEX_DIGITS_LIMIT = 10
"""The digits of the largest completion index, an int32."""
_CHILD_LIMIT = 63
_MD5 = ("[0-9a-f]",) * 32

Atoms = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodNames:
    """The pod names of one owner."""

    regex: str
    """RE2 text that must match the whole name."""
    prefix: str
    """The prefix of all the names."""
    forms: tuple[tuple[str, re.Pattern[str]], ...] = field(repr=False, compare=False)
    """The prefix of each form, and what follows it."""

    def match(self, pod: str) -> bool:
        for prefix, rest in self.forms:
            if pod.startswith(prefix) and rest.fullmatch(pod, len(prefix)) is not None:
                return True
        return False


class Form(NamedTuple):
    """One form of a name: atoms of one character each, then a regular expression."""

    atoms: Atoms
    rest: str


def shared_prefix(texts: Iterable[str]) -> str:
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    return "".join(column[0] for column in columns)


def union(forms: Iterator[Form]) -> PodNames:
    regexes, matchers = [], []
    for atoms, rest in dict.fromkeys(forms):
        regexes.append(_joined(atoms) + rest)
        # The prefix ends before the first character that varies: the owner's name is in it.
        prefix = "".join(takewhile(lambda atom: len(atom) == 1, atoms))
        matchers.append((prefix, re.compile(_joined(atoms[len(prefix) :]) + rest)))
    shared = shared_prefix([prefix for prefix, _ in matchers])
    return PodNames("|".join(regexes), shared, tuple(matchers))


def of_deployment(name: str) -> Iterator[Form]:
    yield _hashed(tuple(name))


def of_set(name: str) -> Iterator[Form]:
    yield _generated((*name, "-"))


def of_stateful_set(name: str) -> Iterator[Form]:
    """Yield the one form of a StatefulSet's pods, which is never cut."""
    yield Form((*name, "-"), _ORDINAL)


def of_leader_worker_set(name: str) -> Iterator[Form]:
    """Yield the one form of leaders (`name-3`) and their workers, which count from 1 (`name-3-1`).

    From its second pod on, a StatefulSet or LeaderWorkerSet called `name-3` has the same form.
    """
    yield Form((*name, "-"), f"{_ORDINAL}(?:-[1-9][0-9]*)?")


def of_model_serving(name: str) -> Iterator[Form]:
    """Yield the one form of a ModelServing's pods: group, role, its number, and the pod's."""
    yield Form((*name, "-"), f"{_ORDINAL}-{_ROLE}-{_ORDINAL}-{_ORDINAL}")


def of_job(name: str) -> Iterator[Form]:
    yield from _job(tuple(name))


def of_cron_job(name: str) -> Iterator[Form]:
    """Yield the forms of the pods of a CronJob's Jobs, named by the minute since 1970.

    A Job made by hand (`kubectl create job --from`) has a name of its own and is not found.
    """
    yield from _job((*name, "-", *(_DIGIT,) * 8))


def of_knative_service(name: str) -> Iterator[Form]:
    """Yield the form of the pods of all its revisions that Knative named (`name-00001`).

    A Deployment name beyond 63 characters becomes the first 20 of the revision's name and its MD5.
    The revision's number is inside that hash, so any hash matches. Revisions that users name
    themselves are not found.
    """
    revision = _child(tuple(name), ("-", *(_DIGIT,) * 5))
    yield _hashed(_child(revision, tuple("-deployment")))


def of_inference_service(name: str) -> Iterator[Form]:
    """Yield the forms of a KServe predictor's pods, raw and serverless, of newer and older KServe.

    The workers of a multi-node predictor are a Deployment of their own (`name-predictor-worker`)
    with a replica count of their own: they are not part of the predictor's replicas.
    """
    for predictor in (f"{name}-predictor", f"{name}-predictor-default"):
        yield from of_deployment(predictor)
        yield from of_knative_service(predictor)


def _generated(base: Atoms) -> Form:
    """Return what the API server makes of a pod's `generateName`."""
    return Form(base[:_BASE_LIMIT], _RANDOM)


def _hashed(owner: Atoms) -> Form:
    """Return the form of pods below a ReplicaSet that is called `owner-hash`."""
    base = (*owner, "-")
    room = _BASE_LIMIT - len(base)
    if room <= 0:
        return _generated(base)
    texts = []
    if room > 1:
        texts.append(f"{_repeated(_HASH, 1, min(_HASH_LIMIT, room - 1))}-")
    if room <= _HASH_LIMIT:
        texts.append(_repeated(_HASH, room))
    between = texts[0] if len(texts) == 1 else f"(?:{'|'.join(texts)})"
    return Form(base, between + _RANDOM)


def _job(owner: Atoms) -> Iterator[Form]:
    yield _generated((*owner, "-"))
    room = _BASE_LIMIT - len(owner) - len("--")
    if room >= _INDEX_DIGITS_LIMIT:
        yield Form((*owner, "-"), f"{_ORDINAL}-{_RANDOM}")
        return
    # Here the owner's name is cut and not the base: the dashes around the index are kept.
    for digits in range(1, _INDEX_DIGITS_LIMIT + 1):
        kept = owner[: _BASE_LIMIT - digits - len("--")]
        index = _DIGIT if digits == 1 else f"[1-9]{_repeated(_DIGIT, digits - 1)}"
        yield Form((*kept, "-"), f"{index}-{_RANDOM}")


def _child(parent: Atoms, suffix: Atoms) -> Atoms:
    """Return Knative's name for a child of `parent`: never longer than 63 characters."""
    if len(parent) + len(suffix) <= _CHILD_LIMIT:
        return parent + suffix
    head = _CHILD_LIMIT - len(_MD5) - len(suffix)
    return parent[:head] + _MD5 + suffix


def _joined(atoms: Atoms) -> str:
    return "".join(_repeated(atom, len(list(run))) for atom, run in groupby(atoms))


def _repeated(atom: str, low: int, high: int | None = None) -> str:
    """Return the RE2 text for `low` to `high` times `atom`; `low` times when `high` is None."""
    if len(atom) == 1:
        return ("[.]" if atom == "." else atom) * low
    if high is None or high == low:
        return atom if low == 1 else f"{atom}{{{low}}}"
    return f"{atom}{{{low},{high}}}"
