"""Series as a request of Prometheus' remote write 1.0, which every server of the tests reads."""

import struct
from collections.abc import Iterable, Iterator

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from testbed.series import STALE, Series

HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_STALE_BITS = 0x7FF0000000000002
"""The NaN that ends a series."""
_LONGEST_LITERAL = 1 << 16

# A value is a double on the wire; as its bits, no machine can turn one NaN into another.
_MESSAGES = """
name: "remote_write.proto" package: "tests" syntax: "proto3"
message_type { name: "Label"
  field { number: 1 name: "name" type: TYPE_STRING label: LABEL_OPTIONAL }
  field { number: 2 name: "value" type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "Sample"
  field { number: 1 name: "value_bits" type: TYPE_FIXED64 label: LABEL_OPTIONAL }
  field { number: 2 name: "timestamp" type: TYPE_INT64 label: LABEL_OPTIONAL } }
message_type { name: "Series"
  field { number: 1 name: "labels" type_name: ".tests.Label" label: LABEL_REPEATED }
  field { number: 2 name: "samples" type_name: ".tests.Sample" label: LABEL_REPEATED } }
message_type { name: "Request"
  field { number: 1 name: "series" type_name: ".tests.Series" label: LABEL_REPEATED } }
"""
_pool = descriptor_pool.DescriptorPool()
_pool.Add(text_format.Parse(_MESSAGES, descriptor_pb2.FileDescriptorProto()))
_Request = message_factory.GetMessageClass(_pool.FindMessageTypeByName("tests.Request"))


def request(history: Iterable[Series]) -> bytes:
    """Return the body of the request that stores these series."""
    message = _Request(
        series=[
            {"labels": _labels(series), "samples": [_sample(*at) for at in series.samples]}
            for series in history
        ]
    )
    return b"".join(_snappy(message.SerializeToString()))


def _labels(series: Series) -> list[dict[str, str]]:
    """In the order of their names; an empty label is none, as in a scrape."""
    texts = {"__name__": series.name, **series.labels}
    return [{"name": name, "value": text} for name, text in sorted(texts.items()) if text]


def _sample(seconds: float, value: float | None) -> dict[str, int]:
    (bits,) = (_STALE_BITS,) if value is STALE else struct.unpack("<Q", struct.pack("<d", value))
    return {"value_bits": bits, "timestamp": round(seconds * 1000)}


def _snappy(body: bytes) -> Iterator[bytes]:
    """Yield `body` as a block of Snappy that holds nothing but literals: nothing is compressed."""
    yield _varint(len(body))
    for begin in range(0, len(body), _LONGEST_LITERAL):
        literal = body[begin : begin + _LONGEST_LITERAL]
        yield b"\xf4" + struct.pack("<H", len(literal) - 1) + literal


def _varint(number: int) -> bytes:
    """Seven bits at a time, the lowest first; all but the last byte are marked."""
    if number < 0x80:
        return bytes([number])
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7)
