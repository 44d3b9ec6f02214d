"""Which parts of an output are compared, and which are not."""

import pytest

from tests.support import printed

PODS = """NAME                    READY   STATUS    RESTARTS   AGE
bert-6d4cf56db6-8zx2k   1/1     Running   0          12s
"""


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        pytest.param(PODS, PODS.replace("12s", "2m30s"), id="age"),
        pytest.param(PODS, PODS.replace("6d4cf56db6-8zx2k", "b95b7d5c4-vkq5t"), id="pod"),
        pytest.param(PODS, PODS.replace("NAME      ", "NAME   "), id="columns"),
        pytest.param("bert  75/70 (avg)\n", "bert  133333m/70 (avg)\n", id="quantity"),
        pytest.param("at 2026-11-21T21:14:15.25Z\n", "at 2027-01-01T00:00:00Z\n", id="time"),
        pytest.param(
            "UUID GPU-0a1b2c3d-0000-1111-2222-333344445555\n",
            "UUID GPU-ffffffff-0000-1111-2222-333344445555\n",
            id="uuid",
        ),
        pytest.param("on 10.0.0.1:80\n", "on 10.100.3.7:8080\n", id="address"),
        pytest.param("one … three\n", "one two three\n", id="words left out"),
        pytest.param("one\n…\nfour\n", "one\ntwo\nthree\nfour\n", id="lines left out"),
        pytest.param("one\n…\nfour\n", "one\nfour\n", id="nothing left out"),
    ],
)
def test_what_differs_from_run_to_run_is_not_compared(shown: str, real: str) -> None:
    assert printed.is_shown_by(real, shown)


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        pytest.param("one\n", "two\n", id="word"),
        pytest.param("one\n", "one\ntwo\n", id="a line more"),
        pytest.param("one\ntwo\n", "one\n", id="a line less"),
        pytest.param("one … three\n", "one\n", id="the end of what was left out"),
        pytest.param("value 70\n", "value <unknown>\n", id="no number"),
        pytest.param("value 70\n", "value 0\n", id="zero for a number"),
        pytest.param("value 0\n", "value 70\n", id="a number for zero"),
        pytest.param("", "one\n", id="something for nothing"),
    ],
)
def test_everything_else_is(shown: str, real: str) -> None:
    assert not printed.is_shown_by(real, shown)
