"""Label selectors as the Kubernetes API writes them, and whether they select a pod. Pure.

The text is that of `status.selector` in a scale subresource: `app=bert,tier in (a,b),!canary`. The
grammar is that of k8s.io/apimachinery, `pkg/labels/selector.go`, without `<` and `>`, which no
selector of pods has.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]

_PART = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = f"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_PART}"
_VALUE = re.compile(f"(?:{_PART})?")
_SPACE = " \t\r\n"
_REQUIREMENT = re.compile(
    rf"""
    [ \t\r\n]*+
    (?: ![ \t\r\n]*+(?P<absent>{_KEY})
      | (?P<key>{_KEY})
        (?: [ \t\r\n]*(?P<sign>==?|!=)[ \t\r\n]*(?P<value>(?:{_PART})?)
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


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the label of one key: its value is among `values`, or it is not."""

    key: str
    is_in: bool
    """False: a label with one of the values is not allowed, and it may be absent."""
    values: frozenset[str] | None
    """None: every value."""

    def allows(self, labels: Labels) -> bool:
        """Tell whether an object with these labels meets the condition."""
        value = labels.get(self.key)
        return self.is_in is (value is not None and (self.values is None or value in self.values))


@dataclass(frozen=True, slots=True)
class Selector:
    """At least one condition; all of them have to be met."""

    requirements: tuple[Requirement, ...]

    def selects(self, labels: Labels) -> bool:
        """Tell whether an object with these labels is selected."""
        return all(requirement.allows(labels) for requirement in self.requirements)


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
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise ValueError(f"it is no label selector from {text[position : position + 100]!r} on")
        if match["absent"]:
            yield Requirement(match["absent"], is_in=False, values=None)
        elif match["sign"]:
            values = frozenset({match["value"]})
            yield Requirement(match["key"], is_in=match["sign"] != "!=", values=values)
        elif match["word"]:
            yield Requirement(match["key"], match["word"] == "in", _parse_values(match["values"]))
        else:
            yield Requirement(match["key"], is_in=True, values=None)
        position, more = match.end(), match["end"] == ","


def _parse_values(text: str) -> frozenset[str]:
    if not text.strip(_SPACE):
        raise ValueError("it has a list without values")
    values = frozenset(value.strip(_SPACE) for value in text.split(","))
    for value in values:
        if not _VALUE.fullmatch(value):
            raise ValueError(f"{value[:100]!r} is no value of a label")
    return values
