"""Reads the values of one trigger's metadata, and collects every mistake, for one message.

Pure. The message reaches KEDA's log through a gRPC trailer: it is short and in ASCII, quotes what
the user wrote, and never shows a value that may be a secret. A parser of a value raises ValueError
with what it expected, in words that follow "expected"; it never repeats the value.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import TypeVar

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.spec.spec import DEMAND_METRIC, TOO_LARGE, ScaledObject, is_countable
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS, hint, is_of_keda

_KEYS_LIMIT = 64
_VALUE_LIMIT = 4096
_MESSAGE_LIMIT = 4000
"""Bytes in the trailer; gRPC implementations refuse trailers of 8 KiB and more in total."""
_SHOWN_CHARACTERS = 100

T = TypeVar("T")
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


class Reader:
    """The metadata of one trigger, read key by key; a wrong value is noted and replaced."""

    def __init__(self, scaled_object: ScaledObject, metadata: Mapping[str, str]) -> None:
        self._scaled_object, self._metadata = scaled_object, metadata
        self.namespace = scaled_object.namespace
        """The ScaledObject's namespace, or a valid stand-in where it is wrong."""
        self._mistakes: list[errors.Mistake] = []
        self._wrong: set[str] = set()
        self.given: dict[str, str] = {}
        """The known keys that are given, each with how it is written, `FromEnv` included."""
        if not workload.is_namespace(self.namespace):
            shown = _quoted(self.namespace)
            self._note("", f"the ScaledObject's namespace {shown}", "expected a namespace")
            self._wrong.add("namespace")
            self.namespace = "default"
        if not workload.is_name(scaled_object.name):
            shown = _quoted(scaled_object.name)
            self._note("", f"the ScaledObject's name {shown}", "expected a Kubernetes name")
        if len(metadata) > _KEYS_LIMIT:
            self._note("", f"{len(metadata)} keys", f"expected at most {_KEYS_LIMIT}")
            self.raise_mistakes()
        for written in sorted(metadata):
            key = written.removesuffix(FROM_ENV)
            if key not in KEYS:
                if not is_of_keda(written):
                    self._note(written, f"{_quoted(written)}: unknown key", hint(written))
            elif key in self.given:
                self.refuse(key, f"{written} is set too; keep one")
            else:
                self.given[key] = written
                if len(metadata[written]) > _VALUE_LIMIT:
                    self.refuse(key, f"expected at most {_VALUE_LIMIT} characters")

    @property
    def entries(self) -> tuple[tuple[str, str], ...]:
        """The known keys and their values as the user wrote them."""
        return tuple((written, self._metadata[written]) for written in self.given.values())

    def is_sound(self, *keys: str) -> bool:
        return self._wrong.isdisjoint(keys)

    def read(self, key: str, parser: Callable[[str], T], instead: T) -> T:
        """Return the parsed value of a key, or of its default.

        `parser` raises ValueError with what it expected. `instead` stands for no value and for a
        wrong one, so that reading can go on.
        """
        text = KEYS[key].default
        if key in self.given:
            text = self._metadata[self.given[key]].strip()
        if text is None or key in self._wrong:
            return instead
        try:
            return parser(text)
        except ValueError as expectation:
            self.refuse(key, f"expected {expectation}")
            return instead

    def refuse(self, key: str, why: str) -> None:
        self._wrong.add(key)
        written, default = self.given.get(key, key), KEYS[key].default
        value = self._metadata.get(written)
        if value is None:
            shown = "not given" if default is None else f"{_quoted(default)} (default)"
        elif written.endswith(FROM_ENV):
            shown = f"a value of {len(value)} characters from the environment"
        else:
            shown = _quoted(value)
        self._note(written, f"{written}: {shown}", why)

    def refuse_given(self, keys: Iterable[str], why: str) -> None:
        """Refuse those of these keys that are given, unless something else is wrong with them."""
        for key in keys:
            if key in self.given and self.is_sound(key):
                self.refuse(key, why)

    def raise_mistakes(self) -> None:
        """Raise one SpecError with all mistakes, if there are any.

        Its message has a line for each mistake, and the number of those that are past the limit.
        """
        if not self._mistakes:
            return
        count = "1 mistake" if len(self._mistakes) == 1 else f"{len(self._mistakes)} mistakes"
        namespace, name = map(_escaped, self._scaled_object)
        lines = [f"{count} in the trigger of ScaledObject {namespace}/{name}:"]
        room = _MESSAGE_LIMIT - _bytes_sent(lines[0])
        for number, mistake in enumerate(self._mistakes):
            line = f"- {mistake.what}; {mistake.advice}"
            line = line.encode("ascii", "backslashreplace").decode("ascii")
            room -= _bytes_sent(line)
            if room < 0:
                lines.append(f"... and {len(self._mistakes) - number} more")
                break
            lines.append(line)
        raise errors.SpecError("\n".join(lines), tuple(self._mistakes))

    def _note(self, key: str, what: str, advice: str) -> None:
        self._mistakes.append(errors.Mistake(key, what, advice))


def _bytes_sent(line: str) -> int:
    """Return a line's bytes in a gRPC trailer, which writes `%` and a line's end as three each."""
    return len(line) + 2 * line.count("%") + 3


def _quoted(value: str) -> str:
    """Return a value in quotes, with three dots if it is cut."""
    return f'"{_escaped(value)}"{"..." if len(value) > _SHOWN_CHARACTERS else ""}'


def _escaped(value: str) -> str:
    """Return the beginning of a value in ASCII, on one line."""
    text = value[:_SHOWN_CHARACTERS].encode("unicode_escape").decode("ascii")
    return text.replace('"', '\\"')[:200]


NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SMALLEST_TARGET = 0.001
"""KEDA rounds targets to thousandths; a smaller one would become 0."""
METRIC_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_INDEXED_NAME = re.compile(r"s[0-9]+-.*")
_METRIC_NAME_LIMIT = 200
_LISTED_NAMES = 20
_MODEL_LIMIT = 256


def target(text: str) -> float:
    """Return a threshold that KEDA can pass on: above 0, also after it rounds to thousandths."""
    number = _decimal(text)
    if not _SMALLEST_TARGET <= number < TOO_LARGE:
        raise ValueError("a number from 0.001 to below 2^53, such as 70")
    return number


def level(text: str) -> float:
    """Return a level to compare activity with: 0 or above."""
    number = _decimal(text)
    if not is_countable(number):
        raise ValueError("a number from 0 to below 2^53, such as 5")
    return number


def _decimal(text: str) -> float:
    """Return a decimal number; refuse what else `float` accepts, such as nan and 1_0."""
    if not NUMBER.fullmatch(text):
        raise ValueError("a number without a unit, such as 70")
    return float(text)


def _duration(smallest: float, largest: float, text: str) -> float:
    seconds = durations.parse(text)
    if not smallest <= seconds <= largest:
        limits = f"from {durations.text(smallest)} to {durations.text(largest)}"
        raise ValueError(f"a duration {limits}, such as 2m")
    return seconds


_LARGEST_WINDOW_SECONDS = 3600.0
"""A snapshot holds every point of its longest window for every GPU."""
window = partial(_duration, 1, _LARGEST_WINDOW_SECONDS)
warmup = partial(_duration, 0, _LARGEST_WINDOW_SECONDS)
timeout = partial(_duration, 1, durations.DAY_SECONDS)
"""May be long, as it needs no samples in memory."""


def choice(kind: type[ChoiceT]) -> Callable[[str], ChoiceT]:
    def parse(text: str) -> ChoiceT:
        return kind(one_of(tuple(kind))(text))

    return parse


def one_of(names: Collection[str], note: str = "") -> Callable[[str], str]:
    """Return the parser of one of these names; the note is for who writes another."""

    def parse(text: str) -> str:
        if text in names:
            return text
        more = len(names) - _LISTED_NAMES
        listed = ", ".join(list(names)[:_LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")
        meant = errors.nearest(text.lower(), names)
        hint = f" (did you mean {meant}?)" if meant else ""
        raise ValueError(f"one of {listed}{hint}{note}")

    return parse


def yes_or_no(text: str) -> bool:
    """Return the boolean that `true` or `false` says."""
    return one_of(("true", "false"))(text) == "true"


def model(text: str) -> str:
    if not (text.isprintable() and 0 < len(text) <= _MODEL_LIMIT):
        raise ValueError(
            f"the name of a model as requests write it, at most {_MODEL_LIMIT} characters"
        )
    return text


def namespace(text: str) -> str:
    if not workload.is_namespace(text):
        raise ValueError("a namespace: lower-case letters, digits and '-', at most 63 characters")
    return text


def metric_name(text: str) -> str:
    """Return a name that the external metrics API and KEDA accept unchanged."""
    if len(text) > _METRIC_NAME_LIMIT or not METRIC_NAME.fullmatch(text):
        raise ValueError(
            "letters, digits, '-', '_' and '.', a letter or digit at both ends, "
            f"at most {_METRIC_NAME_LIMIT} characters, such as gpu-load; or no such key"
        )
    if _INDEXED_NAME.fullmatch(text):
        raise ValueError("a name without an index such as s0- before it: KEDA adds that itself")
    if text.lower() == DEMAND_METRIC:  # KEDA compares them without regard to case
        raise ValueError("another name: this one is that of the demand")
    return text
