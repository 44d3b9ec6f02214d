"""Text → value: what is accepted, and what was expected instead."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.settings import values
from keda_gpu_scaler.settings.values import Address
from keda_gpu_scaler.trigger.access import Namespaces


@pytest.mark.parametrize(
    ("text", "host", "port", "explicit"),
    [
        pytest.param(":6000", "", 6000, "[::]:6000", id="every address"),
        pytest.param(":0", "", 0, "[::]:0", id="free port"),
        pytest.param("127.0.0.1:8080", "127.0.0.1", 8080, "127.0.0.1:8080", id="IPv4"),
        pytest.param("localhost:65535", "localhost", 65535, "localhost:65535", id="name"),
        pytest.param("[::1]:6000", "::1", 6000, "[::1]:6000", id="IPv6"),
    ],
)
def test_an_address_is_read_and_shown_as_it_was_written(
    text: str, host: str, port: int, explicit: str
) -> None:
    found = values.address(text)
    assert found == Address(host, port)
    assert str(found) == text
    assert found.explicit == explicit
    assert values.address(found) is found


@pytest.mark.parametrize(
    "text",
    [
        *("6000", "", ":65536", ":x", ":-1", "::1:6000", "[1.2.3.4]:1", "[::g]:1", "[::1%1]:1"),
        *("a b:1", "http://a:1", "me@a:1", "a:1/", ":1\n"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an address such as :6000"):
        values.address(text)


def test_a_duration_needs_its_unit_and_its_minimum() -> None:
    read = values.seconds(1)
    assert read("1m30s") == 90.0
    assert read(2) == 2.0
    with pytest.raises(ValueError, match="a number needs a unit"):
        read("15")
    with pytest.raises(ValueError, match="a duration of at least 1s"):
        read("999ms")
    with pytest.raises(ValueError, match="a duration of at least 1s"):
        read(float("nan"))
    with pytest.raises(ValueError, match="a duration of at least 1s"):
        read(f"{'9' * 400}h")


@pytest.mark.parametrize(
    ("text", "count"),
    [("1", 1), ("1KiB", 1024), ("64Mi", 64 * 2**20), ("64MiB", 64 * 2**20), ("2GiB", 2**31)],
)
def test_a_size_is_a_number_of_bytes_with_or_without_a_unit(text: str, count: int) -> None:
    assert values.size(text) == count
    assert values.size(count) == count


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "64MB", "MiB", "", "9" * 16])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a number of bytes such as"):
        values.size(text)


@given(st.integers(min_value=1, max_value=10**15 - 1))
def test_the_text_of_a_size_reads_as_the_same_size(count: int) -> None:
    assert values.size(values.size_text(count)) == count


def test_a_count_is_a_whole_number_of_at_least_one() -> None:
    assert values.count("5000") == 5000
    for wrong in ("0", "-1", "1.5", "many", "²", ""):
        with pytest.raises(ValueError, match="a whole number of at least 1"):
            values.count(wrong)


def test_a_file_must_be_readable(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    with pytest.raises(ValueError, match="No such file or directory"):
        values.readable_file(str(path))
    with pytest.raises(ValueError, match="Is a directory"):
        values.readable_file(str(tmp_path))
    path.touch()
    assert values.readable_file(str(path)) == path


def test_a_source_is_named_like_a_dns_label() -> None:
    for name in ("default", "eu-1", "0", "a" * 63):
        assert values.source_name(name) == name
    for wrong in ("", "EU", "-a", "a-", "a.b", "a" * 64, "a\n"):
        with pytest.raises(ValueError, match="a source name of lower-case letters"):
            values.source_name(wrong)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("ml", "ml"),
        (" team-b, team-a ,", "team-a,team-b"),
        (["ml", "web"], "ml,web"),
        ("*", "*"),
        (["*"], "*"),
    ],
)
def test_namespaces_are_separated_by_commas_or_listed(given: object, shown: str) -> None:
    found = values.namespaces(given)
    assert str(found) == shown
    assert "ml" in found or "ml" not in shown.replace("*", "ml")
    assert values.namespaces(found) is found


@pytest.mark.parametrize("text", ["", ",", "*,ml", "team-*", "Team", "a.b", "a" * 64])
def test_what_is_no_namespace_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="namespaces such as team-a,team-b"):
        values.namespaces(text)


def test_every_namespace_is_one_of_all_and_none_of_none() -> None:
    assert "ml" in values.namespaces("*")
    assert "ml" not in values.namespaces("mlx")
    assert "ml" not in Namespaces()


@pytest.mark.parametrize(("text", "on"), [("true", True), ("False", False), (True, True)])
def test_a_flag_is_true_or_false(text: object, *, on: bool) -> None:
    assert values.flag(text) is on


@pytest.mark.parametrize("text", ["1", "yes", "", "truth"])
def test_what_is_no_flag_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="true or false"):
        values.flag(text)
