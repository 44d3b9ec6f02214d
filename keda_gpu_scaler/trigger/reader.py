"""Reads the values of one trigger's metadata and collects every mistake, for one message.

Pure. The message reaches KEDA's log through a gRPC trailer: it is short and in ASCII, quotes what
the user wrote, and never shows a value that may be a secret.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS, hint, is_of_keda

_KEYS_LIMIT = 64
_VALUE_LIMIT = 4096
_MESSAGE_LIMIT = 4000
"""Bytes in the trailer; gRPC implementations refuse trailers of 8 KiB and more in total."""
_SHOWN_CHARACTERS = 100
_ESCAPED_CHARACTERS = 200
_STAND_IN_NAMESPACE = "default"

T = TypeVar("T")


class Reader:
    """The metadata of one trigger, read key by key; a wrong value is noted and replaced."""

    def __init__(self, scaled_object: ScaledObject, metadata: Mapping[str, str]) -> None:
        self._scaled_object = scaled_object
        self.namespace = scaled_object.namespace
        """The ScaledObject's namespace, or a valid stand-in where it is wrong."""
        self._mistakes: list[errors.Mistake] = []
        self._wrong: set[str] = set()
        self._written: dict[str, str] = {}
        """The key as the user wrote it, by the key that it stands for."""
        self._metadata = metadata
        if not workload.is_namespace(self.namespace):
            shown = _quoted(self.namespace)
            self._note("", f"the ScaledObject's namespace {shown}", "expected a namespace")
            self._wrong.add("namespace")
            self.namespace = _STAND_IN_NAMESPACE
        if not workload.is_name(scaled_object.name):
            shown = _quoted(scaled_object.name)
            self._note("", f"the ScaledObject's name {shown}", "expected a Kubernetes name")
        self._take_keys()

    def has(self, key: str) -> bool:
        """Tell whether the user gave this key."""
        return key in self._written

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """The known keys, `FromEnv` included, and their values as the user wrote them."""
        return tuple((written, self._metadata[written]) for written in self._written.values())

    def is_sound(self, *keys: str) -> bool:
        """Tell whether none of these keys is wrong or missing, so that they can be compared."""
        return self._wrong.isdisjoint(keys)

    def read(self, key: str, parser: Callable[[str], T], instead: T) -> T:
        """Return the parsed value of a key, or of its default.

        `parser` raises ValueError with what it expected. `instead` stands for no value and for a
        wrong one, so that reading can go on.
        """
        text = KEYS[key].default
        if key in self._written:
            text = self._metadata[self._written[key]].strip()
        if text is None or key in self._wrong:
            return instead
        try:
            return parser(text)
        except ValueError as expectation:
            self.refuse(key, f"expected {expectation}")
            return instead

    def refuse(self, key: str, why: str) -> None:
        """Note a mistake in the value of this key."""
        self._wrong.add(key)
        self._note(self._written.get(key, key), self._shown_entry(key), why)

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

    def _take_keys(self) -> None:
        if len(self._metadata) > _KEYS_LIMIT:
            self._note("", f"{len(self._metadata)} keys", f"expected at most {_KEYS_LIMIT}")
            self.raise_mistakes()
        for written in sorted(self._metadata):
            key = written.removesuffix(FROM_ENV)
            if key not in KEYS:
                if not is_of_keda(written):
                    self._note(written, f"{_quoted(written)}: unknown key", hint(written))
            elif key in self._written:
                self.refuse(key, f"{written} is given as well; expected one of the two")
            else:
                self._written[key] = written
                if len(self._metadata[written]) > _VALUE_LIMIT:
                    self.refuse(key, f"expected at most {_VALUE_LIMIT} characters")

    def _shown_entry(self, key: str) -> str:
        written = self._written.get(key, key)
        if written not in self._metadata:
            default = KEYS[key].default
            return (
                f"{key}: not given" if default is None else f"{key}: {_quoted(default)} (default)"
            )
        value = self._metadata[written]
        if written.endswith(FROM_ENV):
            return f"{written}: a value of {len(value)} characters from the environment"
        return f"{written}: {_quoted(value)}"


def _bytes_sent(line: str) -> int:
    """Return a line's bytes in a gRPC trailer, which writes `%` and a line's end as three each."""
    return len(line) + 2 * line.count("%") + 3


def _quoted(value: str) -> str:
    """Return a value in quotes, with three dots if it is cut."""
    return f'"{_escaped(value)}"{"..." if len(value) > _SHOWN_CHARACTERS else ""}'


def _escaped(value: str) -> str:
    """Return the beginning of a value in ASCII, on one line."""
    text = value[:_SHOWN_CHARACTERS].encode("unicode_escape").decode("ascii")
    return text.replace('"', '\\"')[:_ESCAPED_CHARACTERS]
