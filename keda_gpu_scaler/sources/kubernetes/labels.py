"""Label selectors as the Kubernetes API writes them, and whether they select a pod. Pure.

The text is that of `status.selector` in a scale subresource: `app=bert,tier in (a,b),!canary`. The
grammar is that of k8s.io/apimachinery, `pkg/labels/selector.go`, without `<` and `>`, which no
selector of pods has.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]

_PART = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = f"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_PART}"
_SPACE = " \t\r\n"
_VALUE = f"[{_SPACE}]*+(?:{_PART})?+[{_SPACE}]*+"
_REQUIREMENT = re.compile(
    rf"""
    [ \t\r\n]*+
    (?: ![ \t\r\n]*+(?P<absent>{_KEY})
      | (?P<key>{_KEY})
        (?: [ \t\r\n]*(?P<sign>==?|!=)[ \t\r\n]*(?P<value>(?:{_PART})?)
          | [ \t\r\n]+(?P<word>in|notin)[ \t\r\n]*
            [(](?![ \t\r\n]*+[)])(?P<values>{_VALUE}(?:,{_VALUE})*+)[)]
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
        value = labels.get(self.key)
        return self.is_in is (value is not None and (self.values is None or value in self.values))


Selector = tuple[Requirement, ...]
"""At least one condition; all of them have to be met."""


def selects(selector: Selector, labels: Labels) -> bool:
    return all(requirement.allows(labels) for requirement in selector)


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
    requirements, position, more = list[Requirement](), 0, True
    while more:
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise ValueError(f"it is no label selector from {text[position : position + 100]!r} on")
        key, is_in, values = match["absent"] or match["key"], not match["absent"], None
        if match["sign"]:
            is_in, values = match["sign"] != "!=", frozenset({match["value"]})
        elif match["word"]:
            is_in = match["word"] == "in"
            values = frozenset(value.strip(_SPACE) for value in match["values"].split(","))
        requirements.append(Requirement(key, is_in=is_in, values=values))
        position, more = match.end(), match["end"] == ","
    return tuple(requirements)
