"""JSON of a server → values, bounded in what it becomes and not only in its bytes. Pure.

`{},{},…` becomes thirty times its bytes in memory, and a library that reads it at once holds the
interpreter for seconds. So an answer is first cut into its rows, which stay text, and a few hundred
rows are read at a time. What is left over is counted before the next ones are read.
"""

import sys
from array import array
from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Points
from keda_gpu_scaler.transport.client import OK, Answer, printable

T = TypeVar("T")
STRING = Decoder(str)
STRINGS = Decoder(list[str])
_LABELS, _EVERY_LABELS = Decoder(dict[str, str]), Decoder(list[dict[str, str]])
_NUMBERS = Decoder(list[float])
_TIMED_NUMBERS = Decoder(list[tuple[float, str]])
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
_COUNTED_BYTES = 512 * 1024
_MEMORY_FACTOR = 2
"""Rows may take twice the limit of an answer's bytes: usually 64 MiB. What kube-state-metrics says
of 15,000 pods takes 45 MiB; 10,000 GPUs with the usual window take 12 MiB."""
_ROW_BYTES = 320
"""A row without its labels and points: the row itself, what holds the points, an empty dict."""
_VALUE_BYTES, _TIME_BYTES = 9, 40
"""The times of a row are shared with other rows."""
_NAME_BYTES = 96
"""A label's place in a dict; its name is shared."""
_TEXT_BYTES = 104
"""What it takes to share something, in addition to itself."""
BATCH_ROWS = 256
"""Rows that are read at a time; of usual ones a millisecond's work."""
_USUAL_LABEL_BYTES = 1024
"""The labels of a row with a longer text are counted before those of another one are read."""
_NUMERALS = b"0123456789.eE+-"
_POINT = b'[,""]'
"""A point without its numerals, as in `[1700000000,"87"]`."""
_NEXT_ROW = bytes.maketrans(b"\n", b",")


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
        self._times: dict[bytes, tuple[float, ...]] = {}

    def open(self, answer: Answer) -> None:
        """Make room for the rows of an answer, after what is cheap to count was counted.

        Raises:
            errors.SourceMalformedError: there are more objects or lists than in any usual answer.
        """
        for sign, fewest_bytes in _FEWEST_BYTES.items():
            limit = answer.limit_bytes // fewest_bytes
            # In parts, because a count holds the interpreter.
            parts = range(0, len(answer.body), _COUNTED_BYTES)
            found = sum(answer.body.count(sign, at, at + _COUNTED_BYTES) for at in parts)
            if found > limit:
                raise _too_much(f"more than {limit:,} times {sign.decode()}")
        if not self._limit:
            self._limit = self._left = _MEMORY_FACTOR * answer.limit_bytes

    def mark(self) -> tuple[int, int, int, int]:
        """Return what `take_back` needs."""
        return self._limit, self._left, len(self._texts), len(self._times)

    def take_back(self, mark: tuple[int, int, int, int]) -> None:
        """Forget all rows since that mark."""
        self._limit, self._left, texts, times = mark
        while len(self._texts) > texts:
            self._texts.popitem()
        while len(self._times) > times:
            self._times.popitem()

    def labels(self, texts: Sequence[Text]) -> list[dict[str, str]]:
        """Return the labels of rows.

        Raises:
            ValueError: they are not objects of texts.
            errors.SourceMalformedError: there is no room for them.
        """
        if max(map(len, texts)) <= _USUAL_LABEL_BYTES:
            found = decoded(b"[" + b",".join(texts) + b"]", _EVERY_LABELS)
        elif len(texts) == 1:
            found = [part(texts[0], _LABELS, LABEL_BYTES)]
        else:
            return [self.labels([text])[0] for text in texts]
        shared, before = self._texts, len(self._texts)
        for labels in found:
            for name, value in labels.items():
                labels[name] = shared.setdefault(value, value)
        new = len(shared) - before
        self._take(
            _ROW_BYTES * len(found)
            + _NAME_BYTES * sum(map(len, found))
            + _TEXT_BYTES * new
            + sum(map(sys.getsizeof, islice(reversed(shared), new)))
        )
        return found

    def ranges(self, texts: Sequence[Text]) -> list[Points]:
        """Return the points of rows, each a list of pairs of a time and the text of a number.

        Raises:
            ValueError: they are something else.
            errors.SourceMalformedError: there is no room for them.
        """
        read = self._plain_numbers(texts) if sum(map(len, texts)) <= POINT_BYTES else None
        if read is None:
            found_texts = (part(text, _TIMED_NUMBERS, POINT_BYTES) for text in texts)
            return [self.points(found) for found in found_texts]
        numbers, counts = read
        self._take(_VALUE_BYTES * sum(counts))
        times, values = numbers[::2].tobytes(), numbers[1::2]
        found, begin = list[Points](), 0
        for count in counts:
            end = begin + count
            found.append(Points(self._times_of(times[8 * begin : 8 * end]), values[begin:end]))
            begin = end
        return found

    @staticmethod
    def _plain_numbers(texts: Sequence[Text]) -> "tuple[array[float], list[int]] | None":
        """Return the times and values of rows in one list, and the number of points in each row.

        None: they have to be read one by one, as they are no points, or a value is no number in
        JSON, such as NaN. Parsed JSON that is a list of points without its numerals has a number at
        each of the places, so that the numbers can be read together, without brackets and quotes.
        """
        text = b"\n".join(texts)
        shapes = text.translate(None, _NUMERALS).split(b"\n")
        counts = [len(shape) // (len(_POINT) + 1) for shape in shapes]
        usual = {b"[" + b",".join([_POINT] * count) + b"]" for count in {*counts}}
        if len(shapes) != len(texts) or not usual.issuperset(shapes) or b'"-' in text:
            return None  # -0 as well, which is another number in JSON
        try:
            numbers = decoded(b"[" + text.translate(_NEXT_ROW, b'[]"') + b"]", _NUMBERS)
        except ValueError:
            return None
        return array("d", numbers), counts

    def points(self, found: Sequence[tuple[float, float | str]]) -> Points:
        """Return the points of a row, as numbers.

        Raises:
            ValueError: a value is no number.
            errors.SourceMalformedError: there is no room for them.
        """
        values = array("d", [float(value) for _, value in found])
        self._take(_VALUE_BYTES * len(found))
        return Points(self._times_of(array("d", [time for time, _ in found]).tobytes()), values)

    def _times_of(self, packed: bytes) -> tuple[float, ...]:
        """Return the times in an array's bytes, which other rows may have as well."""
        if (known := self._times.get(packed)) is None:
            times = array("d", packed)
            self._take(_TEXT_BYTES + _TIME_BYTES * len(times))
            known = self._times[packed] = tuple(times)
        return known

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
