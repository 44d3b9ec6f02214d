"""Alert records as replicas send them to each other."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import AlertRecord
from keda_gpu_scaler.alerts.replicas import FARTHEST_SECONDS, read_records, written_records
from keda_gpu_scaler.alerts.store import Key
from keda_gpu_scaler.spec.spec import ScaledObject

KEY = Key(ScaledObject("ml", "bert"), "c6eadffa33fcdf37")
WRITTEN = {
    "namespace": "ml",
    "scaled_object": "bert",
    "alert": "c6eadffa33fcdf37",
    "name": "Busy",
    "began_at": 1.5,
    "heard_at": 2.0,
    "ended_at": None,
    "told_at": None,
}
seconds = st.floats(-FARTHEST_SECONDS, FARTHEST_SECONDS)


def test_an_entry_is_written_as_names_texts_and_seconds() -> None:
    record = AlertRecord(KEY, "Busy", began_at=1.5, heard_at=2.0)
    assert written_records([record]) == {"alerts": [WRITTEN]}


@given(st.tuples(seconds, seconds, seconds, seconds))
def test_what_is_written_is_read_as_the_same(times: tuple[float, float, float, float]) -> None:
    record = AlertRecord(KEY, "Busy", *times)
    assert read_records(orjson.loads(orjson.dumps(written_records([record])))) == [record]


def test_a_field_that_only_a_newer_version_knows_is_passed_over() -> None:
    (record,) = read_records({"alerts": [WRITTEN | {"colour": "red"}], "version": 2})
    assert record == AlertRecord(KEY, "Busy", began_at=1.5, heard_at=2.0)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ([], "expected the alerts that another replica knows of"),
        ({"alerts": {}}, "expected the alerts that another replica knows of"),
        ({"alerts": ["a"]}, "expected each alert to be an object"),
        ({"alerts": [WRITTEN | {"alert": 1}]}, "expected texts"),
        ({"alerts": [WRITTEN | {"namespace": "M L"}]}, "expected the names of a namespace"),
        ({"alerts": [WRITTEN | {"scaled_object": ""}]}, "expected the names of a namespace"),
        ({"alerts": [WRITTEN | {"began_at": "1"}]}, "expected began_at to be a number"),
        ({"alerts": [WRITTEN | {"heard_at": float("inf")}]}, "expected heard_at to be a number"),
        ({"alerts": [WRITTEN | {"heard_at": float("nan")}]}, "expected heard_at to be a number"),
        ({"alerts": [WRITTEN | {"began_at": 1e300}]}, "expected began_at to be a number"),
        ({"alerts": [WRITTEN | {"ended_at": -1e300}]}, "expected ended_at to be a number"),
        ({"alerts": [WRITTEN | {"alert": "a" * 257}]}, "of at most 256 characters"),
        ({"alerts": [WRITTEN | {"name": "a" * 257}]}, "of at most 256 characters"),
        ({"alerts": [WRITTEN | {"heard_at": None}]}, "expected heard_at or told_at"),
    ],
)
def test_anything_else_is_refused(payload: object, words: str) -> None:
    with pytest.raises(errors.RequestError, match=words):
        read_records(payload)
