"""Alert records as replicas send them to each other."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import LIMIT, AlertRecord
from keda_gpu_scaler.alerts.forwarding import LONGEST_BYTES
from keda_gpu_scaler.alerts.notifications import shown
from keda_gpu_scaler.alerts.replicas import read_records, written_records
from keda_gpu_scaler.alerts.store import Key
from keda_gpu_scaler.spec.spec import ScaledObject

KEY = Key(ScaledObject("ml", "bert"), "c6eadffa33fcdf37")
WRITTEN = {"key": KEY, "name": "Busy", "began_at": 1.5, "heard_at": 2.0}
seconds = st.floats(allow_nan=False, allow_infinity=False)


@given(st.tuples(seconds, seconds, seconds, seconds))
def test_what_is_written_is_read_as_the_same(times: tuple[float, float, float, float]) -> None:
    record = AlertRecord(KEY, "Busy", *times)
    assert read_records(written_records([record])) == [record]


def test_a_field_that_only_a_newer_version_knows_is_passed_over() -> None:
    record = AlertRecord(KEY, "Busy", began_at=1.5, heard_at=2.0)
    body = msgspec.json.encode({"alerts": [WRITTEN | {"colour": "red"}], "version": 2})
    assert read_records(body) == [record]


def test_a_full_store_of_the_longest_names_that_senders_write_is_one_request() -> None:
    key = Key(ScaledObject("n" * 63, "o" * 253), "f" * 64)
    record = AlertRecord(key, shown("😀" * 999), *[1_795_260_000.123456] * 4)
    assert len(written_records([record] * LIMIT)) < LONGEST_BYTES


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ([], "Expected `object`"),
        ({"alerts": {}}, r"Expected `array`.*alerts"),
        ({"alerts": ["a"]}, r"Expected `object`.*alerts"),
        ({"alerts": [WRITTEN | {"key": "a"}]}, r"Expected `array`.*key"),
        ({"alerts": [WRITTEN | {"key": [["M L", "a"], ""]}]}, "expected the names of a namespace"),
        ({"alerts": [WRITTEN | {"key": [["ml", ""], ""]}]}, "expected the names of a namespace"),
        ({"alerts": [WRITTEN | {"began_at": "1"}]}, r"Expected `float`.*began_at"),
        ({"alerts": [WRITTEN | {"key": [["ml", "a"], "a" * 257]}]}, r"length <= 256.*key"),
        ({"alerts": [WRITTEN | {"name": "a" * 257}]}, r"length <= 256.*name"),
        ({"alerts": [WRITTEN | {"name": "a\x1b[2J"}]}, "expected the names of alerts without"),
        ({"alerts": [WRITTEN | {"key": [["ml", "a"], "a\n"]}]}, "the names of alerts without"),
        ({"alerts": [WRITTEN] * (LIMIT + 1)}, f"length <= {LIMIT}"),
    ],
)
def test_anything_else_is_refused(payload: object, words: str) -> None:
    with pytest.raises(errors.RequestError, match=words):
        read_records(msgspec.json.encode(payload))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"alerts":' * 100_000,
        b'{"a":' + b"[" * 100_000,
        b'{"alerts":[{"namespace":"\xff"}]}',
        msgspec.json.encode({"alerts": [WRITTEN]}).replace(b"2.0", b"NaN"),
        msgspec.json.encode({"alerts": [WRITTEN]}).replace(b"2.0", b"1e400"),
    ],
)
def test_what_is_no_json_is_refused_in_words(body: bytes) -> None:
    with pytest.raises(errors.RequestError, match="expected the alerts that another replica"):
        read_records(body)
