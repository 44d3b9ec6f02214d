"""Text → value for HTTP: URLs, targets, peers, headers, tokens."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from keda_gpu_scaler.query.promql.tree import Matcher
from keda_gpu_scaler.settings import values


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://prometheus:9090", "http://prometheus:9090"),
        ("http://prometheus:9090/", "http://prometheus:9090"),
        ("https://mimir.example/prometheus/", "https://mimir.example/prometheus"),
        ("HTTP://[::1]:9090", "http://[::1]:9090"),
    ],
)
def test_a_url_is_kept_without_its_last_slash(text: str, url: str) -> None:
    assert values.url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("prometheus:9090", id="no scheme"),
        pytest.param("ftp://prometheus", id="another scheme"),
        pytest.param("http://", id="no host"),
        pytest.param("http://:9090", id="no host before a port"),
        pytest.param("http://prometheus:0", id="port 0"),
        pytest.param("http://prometheus:99999", id="no such port"),
        pytest.param("http://[::1", id="half an address"),
        pytest.param("http://a b", id="space"),
        pytest.param("http://a\u0000b", id="control character"),
        pytest.param("http://a/?token=1", id="query"),
        pytest.param("http://a/#b", id="fragment"),
    ],
)
def test_what_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a URL such as http://prometheus:9090"):
        values.url(text)


def test_credentials_in_a_url_are_refused_and_it_is_said_where_they_go() -> None:
    with pytest.raises(ValueError, match=r"without a user or password: .*username and password"):
        values.url("https://me:hunter2@prometheus")
    with pytest.raises(ValueError, match="without a user or password"):
        values.targets("https://me@exporter:9400/metrics")


def test_targets_are_separated_by_commas_or_listed() -> None:
    expected = ("http://10.0.0.1:9400/metrics", "dns+https://exporter.gpu:9400/gpu?a=b")
    assert values.targets(f" {expected[0]} , {expected[1]},") == expected
    assert values.targets(list(expected)) == expected


def test_a_target_without_a_path_means_metrics() -> None:
    assert values.targets("http://a:9400") == ("http://a:9400/metrics",)
    assert values.targets("http://a:9400/") == ("http://a:9400/",)


def test_a_target_given_twice_counts_once() -> None:
    assert values.targets("http://a,http://a/metrics") == ("http://a/metrics",)


@pytest.mark.parametrize("text", ["exporter:9400", "dns://a:1", "http://a#b", "dns+http://"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="targets such as"):
        values.targets(text)


@pytest.mark.parametrize("text", ["", " , ,"])
def test_no_target_at_all_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="at least one target"):
        values.targets(text)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("X-Scope-OrgID=a=b, X-More=2", id="pairs"),
        pytest.param('{"X-Scope-OrgID": "a=b", "X-More": "2"}', id="JSON"),
        pytest.param({"X-Scope-OrgID": SecretStr("a=b"), "X-More": "2"}, id="mapping"),
    ],
)
def test_headers_are_pairs_or_json_or_a_mapping(given: object) -> None:
    found = {name: text.get_secret_value() for name, text in values.headers(given).items()}
    assert found == {"X-Scope-OrgID": "a=b", "X-More": "2"}


@pytest.mark.parametrize("given", ["tenant", "{", '{"a": 1}', "a=1,b", 5, {"a": {}}])
def test_what_are_no_headers_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="name=value,name=value or"):
        values.headers(given)


@pytest.mark.parametrize("given", ["a b=1", "=1", {"a": "x\r\ny: z"}, {"a": "ü"}, {"a\n": "1"}])
def test_headers_that_http_cannot_carry_are_refused(given: object) -> None:
    with pytest.raises(ValueError, match="header names and values that HTTP allows"):
        values.headers(given)


def test_a_token_is_visible_ascii() -> None:
    assert values.token("abc.DEF-1~+/=") == "abc.DEF-1~+/="
    assert values.token(SecretStr("abc")) == "abc"
    for wrong in ("", "a b", "a\nb", "ä", 5):
        with pytest.raises(ValueError, match="a token of visible ASCII characters"):
            values.token(wrong)


@given(st.from_regex(r"https?://[^ ]{1,20}", fullmatch=True))
def test_a_url_that_was_read_reads_as_itself(text: str) -> None:
    with contextlib.suppress(ValueError):
        found = values.url(text)
        assert values.url(found) == found


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\nb", "é"])
def test_the_name_of_a_header_is_a_token(name: str) -> None:
    assert values.header_name("X-Scope-OrgID") == "X-Scope-OrgID"
    with pytest.raises(ValueError, match="the name of a header"):
        values.header_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a&b", "a=b", "query", "time", "timeout"])
def test_the_name_of_a_parameter_is_none_that_a_query_has(name: str) -> None:
    assert values.parameter("namespace") == "namespace"
    with pytest.raises(ValueError, match="the name of a URL parameter"):
        values.parameter(name)


def test_matchers_are_read_once() -> None:
    found = values.matchers('cluster="eu-1"')
    assert found == (Matcher("cluster", "=", "eu-1"),)
    assert values.matchers(found) is found


def test_peers_are_separated_by_commas_or_listed() -> None:
    expected = ("http://10.0.0.1:8080", "dns+http://keda-gpu-scaler:8080")
    assert values.peers(f" {expected[0]}/ , {expected[1]},") == expected
    assert values.peers(list(expected)) == expected
    assert values.peers("") == ()


@pytest.mark.parametrize(
    "text", ["keda-gpu-scaler:8080", "http://a:8080/alerts", "http://a?b", "http://a#b", "grpc://a"]
)
def test_what_is_no_peer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="addresses of replicas such as"):
        values.peers(text)
