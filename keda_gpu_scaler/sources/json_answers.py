"""JSON of a server → values, bounded in what it becomes and not only in its bytes. Pure.

`{},{},…` becomes thirty times its bytes in memory, and a library that reads it at once holds the
interpreter for seconds. So an answer is first cut into its rows, which stay text, and each row is
read by itself. What is left over is counted before the next one is read.
"""

import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Points
from keda_gpu_scaler.transport.client import OK, Answer, printable

T = TypeVar("T")
STRING = Decoder(str)
STRINGS = Decoder(list[str])
_LABELS = Decoder(dict[str, str])
Text = msgspec.Raw
"""A part of an answer that is not read yet; it holds the bytes of the whole answer."""
NOTHING = msgspec.Raw(b"null")
WORDS_BYTES = 128 * 1024
"""The text of an error, in which a server may repeat a query of 16 KiB several times."""
SHOWN_BYTES = 1024
"""A server's own words are looked for in this much of an answer that is no JSON."""
LABEL_BYTES = 16 * 1024
"""The text of one row's labels; usual ones have a few hundred bytes."""
POINT_BYTES = 1024 * 1024
"""The text of one row's points; an hour of one point per second has 100 KiB."""
_FEWEST_BYTES = {b"{": 128, b"[": 32}
"""An answer of the largest size has at most one of these in so many bytes. A row has two objects
and 130 bytes or more; until it is read, it takes 200 bytes. A point is a list, and counted again
below; lists in lists take time, 8 s for those of 32 MiB."""
_MEMORY_FACTOR = 2
"""Rows may take twice the limit of an answer's bytes: usually 64 MiB. What kube-state-metrics says
of 15,000 pods takes 45 MiB; 10,000 GPUs with the usual window take 12 MiB."""
_ROW_BYTES = 320
"""A row without its labels and points: the row itself, what holds the points, an empty dict."""
_VALUE_BYTES, _TIME_BYTES = 9, 32
"""The times of a row are shared with other rows."""
_NAME_BYTES = 96
"""A label's place in a dict; its name is shared."""
_TEXT_BYTES = 104
"""What it takes to share something, in addition to itself."""


def body(answer: Answer, decoder: Decoder[T], expected: str) -> T:
    """Return the JSON object in an answer.

    Args:
        answer: an answer of any status: servers explain errors in JSON too.
        decoder: reads a `msgspec.Struct`: only its fields, and those of type `Text` not yet.
        expected: what the server should have sent, for the message.

    Raises:
        errors.SourceRefusedError: an error that is not explained in JSON, perhaps by a proxy.
        errors.SourceMalformedError: no error, and no JSON object.
    """
    try:
        return decoded(answer.body, decoder)
    except ValueError as error:
        words = printable(answer.body[:SHOWN_BYTES].decode("utf-8", errors="replace"))
        shown = f"{printable(answer.content_type)} instead of {expected}: {words}"
        fault = errors.SourceMalformedError if answer.status == OK else errors.SourceRefusedError
        raise fault(f"HTTP {answer.status} with {shown}") from error


def decoded(text: bytes | bytearray | Text, decoder: Decoder[T]) -> T:
    """Return the value in a text.

    Raises:
        ValueError: it is no JSON, nested too deeply, or of another type.
    """
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def part(text: Text, decoder: Decoder[T], limit_bytes: int) -> T:
    """Return the value of a part of bounded size.

    Raises:
        ValueError: it is of another type, or nested too deeply.
        errors.SourceMalformedError: it is larger.
    """
    if (found := memoryview(text).nbytes) > limit_bytes:
        message = f"a part of {found:,} bytes, which usually has at most {limit_bytes:,}"
        raise errors.SourceMalformedError(message)
    return decoded(text, decoder)


def is_list(text: Text) -> bool:
    """Tell whether a part is a list."""
    return bytes(memoryview(text)[:1]) == b"["


class Room:
    """What the rows of one answer, or of all parts of one, may take in memory.

    Texts that several labels have in common, and times that several points have, are kept once.
    """

    def __init__(self) -> None:
        self._limit = self._left = 0
        self._texts: dict[str, str] = {}
        self._times: dict[tuple[float, ...], tuple[float, ...]] = {}

    def open(self, answer: Answer) -> None:
        """Make room for the rows of an answer, after what is cheap to count was counted.

        Raises:
            errors.SourceMalformedError: there are more objects or lists than in any usual answer.
        """
        for sign, fewest_bytes in _FEWEST_BYTES.items():
            limit = answer.limit_bytes // fewest_bytes
            if answer.body.count(sign) > limit:
                raise _too_much(f"more than {limit:,} times {sign.decode()}")
        if not self._limit:
            self._limit = self._left = _MEMORY_FACTOR * answer.limit_bytes

    def labels(self, text: Text) -> Mapping[str, str]:
        """Return the labels of a row.

        Raises:
            ValueError: they are not an object of texts.
            errors.SourceMalformedError: there is no room for them.
        """
        found = part(text, _LABELS, LABEL_BYTES)
        taken, texts = _ROW_BYTES + _NAME_BYTES * len(found), self._texts
        for name, value in found.items():
            if value not in texts:
                texts[value] = value
                taken += _TEXT_BYTES + sys.getsizeof(value)
            found[name] = texts[value]
        self._take(taken)
        return found

    def points(self, found: Sequence[tuple[float, float | str]]) -> Points:
        """Return the points of a row, as numbers.

        Raises:
            ValueError: a value is no number.
            errors.SourceMalformedError: there is no room for them.
        """
        times, values = tuple(time for time, _ in found), array("d")
        if times not in self._times:
            self._take(_TEXT_BYTES + _TIME_BYTES * len(found))
            self._times[times] = times
        self._take(_VALUE_BYTES * len(found))
        values.extend(float(value) for _, value in found)
        return Points(self._times[times], values)

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _too_much(f"rows of more than {self._limit} bytes in memory")


def _too_much(what: str) -> errors.SourceMalformedError:
    return errors.SourceMalformedError(
        f"an answer with {what}; expected fewer pods: spread the triggers over several sources, or "
        "raise max_response_bytes and the limit of memory with it"
    )


def words(text: Text) -> str:
    """Return a part as a server's own words: the text of a string, else the JSON, if not huge."""
    found = memoryview(text)
    if found.nbytes > WORDS_BYTES:
        return f"a text of {found.nbytes:,} bytes"
    try:
        return decoded(text, STRING)
    except ValueError:
        return bytes(found).decode("utf-8", errors="replace")
