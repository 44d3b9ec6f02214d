"""The corpus of the fuzzer, and what Hypothesis makes of it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.targets import CORPUS, TARGETS

FILES = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_no_input_of_the_corpus_breaks_a_promise(file: Path) -> None:
    TARGETS[file.parent.name](file.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_no_changed_input_breaks_a_promise(name: str, data: st.DataObject) -> None:
    files = [file for file in FILES if file.parent.name == name]
    body = bytearray(data.draw(st.sampled_from(files)).read_bytes())
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(body)), st.binary(max_size=9)))
    ):
        body[at : at + len(byte)] = byte
    TARGETS[name](bytes(body))
