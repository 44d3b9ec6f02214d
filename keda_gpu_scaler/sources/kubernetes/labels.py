"""Label selectors as the Kubernetes API writes them, and whether they select a pod. Pure.

The text is that of `status.selector` in a scale subresource: `app=bert,tier in (a,b),!canary`. The
grammar is that of k8s.io/apimachinery, `pkg/labels/selector.go`; that parser is no library here.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]

_REQUIREMENT = re.compile(
    r"""
    [ \t\r\n]*+
    (?: ![ \t\r\n]*+(?P<absent>[^=!(),<>\ \t\r\n]++)
      | (?P<key>[^=!(),<>\ \t\r\n]++)
        (?: [ \t\r\n]*+(?P<sign>==|=|!=|<|>)[ \t\r\n]*(?P<value>[^=!(),<>\ \t\r\n]*)
          | [ \t\r\n]+(?P<word>in|notin)[ \t\r\n]*[(](?P<values>[^()]*)[)]
        )?
    )
    [ \t\r\n]*
    (?P<end>,|\Z)
    """,
    re.VERBOSE,
)
_LONGEST = 2000
"""Every pod is compared with a selector; usual ones have tens of characters."""
_SPACE = " \t\r\n"
_PART = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = "(?=[^/]{1,253}/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:[.][a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/"
_KEY = re.compile(f"(?:{_DOMAIN})?{_PART}")
_VALUE = re.compile(f"(?:{_PART})?")
_NUMBER = re.compile("[0-9]{1,63}")
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the label of one key."""

    key: str
    sign: str
    """in, notin, exists, absent, < or >; `=` is read as `in`, `!=` as `notin`."""
    values: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise ValueError for a requirement that the API server refuses."""
        if not _KEY.fullmatch(self.key):
            raise ValueError(f"{self.key[:100]!r} is no key of a label")
        for value in self.values:
            if not _VALUE.fullmatch(value):
                raise ValueError(f"{value[:100]!r} is no value of a label")
            if self.sign in _COMPARES and _number(value) is None:
                raise ValueError(f"{value!r} is no whole number")

    def allows(self, labels: Labels) -> bool:
        """Tell whether an object with these labels meets the condition."""
        value = labels.get(self.key)
        return _ALLOWS[self.sign](self.values, value)


@dataclass(frozen=True, slots=True)
class Selector:
    """At least one condition; all of them have to be met."""

    requirements: tuple[Requirement, ...]

    def selects(self, labels: Labels) -> bool:
        """Tell whether an object with these labels is selected."""
        return all(one.allows(labels) for one in self.requirements)


def parse(text: str) -> Selector:
    """Return the selector in a text.

    Raises:
        ValueError: the text is no selector, or it is empty. An empty selector selects every pod in
            Kubernetes, but a scale target without a selector yet shows the same.
    """
    if not text.strip(_SPACE):
        raise ValueError("it is empty, which would be every pod of the namespace")
    if len(text) > _LONGEST:
        raise ValueError(f"it is longer than {_LONGEST} characters")
    return Selector(tuple(_requirements(text)))


def _requirements(text: str) -> Iterator[Requirement]:
    position, more = 0, True
    while more:
        found = _REQUIREMENT.match(text, position)
        if found is None:
            raise ValueError(f"it is no label selector from {text[position : position + 100]!r} on")
        yield _requirement(found)
        position, more = found.end(), found["end"] == ","


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["absent"], "absent")
    if found["sign"]:
        return Requirement(found["key"], _MEANINGS[found["sign"]], frozenset({found["value"]}))
    if found["word"]:
        return Requirement(found["key"], found["word"], _listed(found["values"]))
    return Requirement(found["key"], "exists")


def _listed(text: str) -> frozenset[str]:
    if not text.strip(_SPACE):
        raise ValueError("it has a list without values")
    return frozenset(value.strip(_SPACE) for value in text.split(","))


def _number(text: str) -> int | None:
    """Return a whole number of at most 64 bits, else None; a label's value has no sign."""
    number = int(text) if _NUMBER.fullmatch(text) else None
    return number if number is not None and number <= _LARGEST else None


def _is_less(values: frozenset[str], value: str | None) -> bool:
    return _compared(values, value, lambda limit, number: number < limit)


def _is_greater(values: frozenset[str], value: str | None) -> bool:
    return _compared(values, value, lambda limit, number: number > limit)


def _compared(values: frozenset[str], value: str | None, holds: Callable[[int, int], bool]) -> bool:
    number = None if value is None else _number(value)
    return number is not None and all(holds(int(limit), number) for limit in values)


_MEANINGS = {"=": "in", "==": "in", "!=": "notin", "<": "<", ">": ">"}
_COMPARES = frozenset({"<", ">"})
_ALLOWS: Mapping[str, Callable[[frozenset[str], str | None], bool]] = {
    "in": lambda values, value: value in values,
    "notin": lambda values, value: value not in values,
    "exists": lambda _values, value: value is not None,
    "absent": lambda _values, value: value is None,
    "<": _is_less,
    ">": _is_greater,
}
