"""Text → value: what is accepted, and what was expected instead."""

from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator, SecretStr, TypeAdapter, ValidationError

from keda_gpu_scaler.promql.tree import Matcher
from keda_gpu_scaler.settings import values
from keda_gpu_scaler.settings.values import Address
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, NO_NAMESPACE, Namespaces

MINUTES = Annotated[float, BeforeValidator(values.seconds(60))]


def read(form: Any, value: object) -> Any:
    return TypeAdapter(form).validate_python(value)


def mistakes(form: object, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(form, value)
    return " ".join(error["msg"] for error in caught.value.errors())


TARGETS = ("http://10.0.0.1:9400/metrics", "dns+https://exporter.gpu:9400/gpu?a=b")
PEERS = ("http://10.0.0.1:8080", "dns+http://keda-gpu-scaler:8080")
HEADERS = {"X-Scope-OrgID": SecretStr("a=b"), "X-More": SecretStr("2")}


@pytest.mark.parametrize(
    ("form", "given", "value"),
    [
        (values.Url, "http://prometheus:9090/", "http://prometheus:9090"),
        (values.Url, "https://mimir.example/prometheus/", "https://mimir.example/prometheus"),
        (values.Url, "HTTP://[::1]:9090", "http://[::1]:9090"),
        (values.Url, "http://vmselect/select/0/prometheus", "http://vmselect/select/0/prometheus"),
        (values.Url, "https://gw/graphs/api/v2", "https://gw/graphs/api/v2"),
        (values.Targets, f" {TARGETS[0]} , {TARGETS[1]},", TARGETS),
        (values.Targets, list(TARGETS), TARGETS),
        (values.Targets, "http://a:9400", ("http://a:9400/metrics",)),
        (values.Targets, "http://a:9400/", ("http://a:9400/",)),
        (values.Peers, f" {PEERS[0]}/ , {PEERS[1]},", PEERS),
        (values.Peers, list(PEERS), PEERS),
        (values.Peers, "", ()),
        (values.Headers, "X-Scope-OrgID=a=b, X-More=2", HEADERS),
        (values.Headers, '{"X-Scope-OrgID": "a=b", "X-More": "2"}', HEADERS),
        (values.Headers, {"X-Scope-OrgID": SecretStr("a=b"), "X-More": "2"}, HEADERS),
        (values.Token, "abc.DEF-1~+/=", SecretStr("abc.DEF-1~+/=")),
        (values.HeaderName, "X-Scope-OrgID", "X-Scope-OrgID"),
        (values.Parameter, "namespace", "namespace"),
        (values.Matchers, 'cluster="eu-1"', (Matcher("cluster", "=", "eu-1"),)),
        (values.Matchers, (), ()),
        (values.PositiveSeconds, "1m30s", 90.0),
        (values.PositiveSeconds, 2, 2.0),
        (values.Bytes, "1", 1),
        (values.Bytes, "1KiB", 1024),
        (values.Bytes, "64Mi", 64 * 2**20),
        (values.Bytes, "64MiB", 64 * 2**20),
        (values.Bytes, "2GiB", 2**31),
        (values.Bytes, 2**31, 2**31),
        (values.Count, "5000", 5000),
        (values.Namespaces, "ml", Namespaces(frozenset({"ml"}))),
        (values.Namespaces, " team-b, a ,", Namespaces(frozenset({"a", "team-b"}))),
        (values.Namespaces, ["ml", "web"], Namespaces(frozenset({"ml", "web"}))),
        (values.Namespaces, "*", EVERY_NAMESPACE),
        (values.Namespaces, ["*"], EVERY_NAMESPACE),
        (values.Namespaces, NO_NAMESPACE, NO_NAMESPACE),
        (values.Names, "nic, rdma.example.com", {"nic", "rdma.example.com"}),
        (values.Names, ["nic", "rdma.example.com"], {"nic", "rdma.example.com"}),
        (values.Name, "Größe {metric}", "Größe {metric}"),
        (values.SourceName, "eu-1", "eu-1"),
        (values.SourceName, "a" * 63, "a" * 63),
    ],
)
def test_what_is_accepted(form: object, given: object, value: object) -> None:
    assert read(form, given) == value


AN_ADDRESS = "an address such as :6000"
A_URL = "a URL such as http://prometheus:9090"
A_USER = "without a user or password: those have separate settings (username and password"
A_TARGET = "targets such as http://10.0.0.1:9400/metrics"
A_PEER = "addresses of replicas such as http://10.0.0.1:8080"
PAIRS = 'name=value,name=value or {"name": "value"}'
A_TOKEN = "a token of visible ASCII characters"
A_BASE = "the base URL http://a:9090: the scaler adds the path of each query"
A_PATTERN = "String should match pattern"
A_SIZE = "a number of bytes such as 1048576, 64MiB or 1GiB"
A_NAMESPACE = "namespaces such as team-a,team-b"


@pytest.mark.parametrize(
    ("form", "wrong", "expected"),
    [
        (values.Url, ["prometheus:9090", "ftp://prometheus", "http://", "http://:9090"], A_URL),
        (values.Url, ["http://a:0", "http://a:99999", "http://[::1", "http://a b"], A_URL),
        (values.Url, ["http://a\u0000b", "http://a/?token=1", "http://a/#b"], A_URL),
        (values.Url, ["https://me:hunter2@prometheus"], A_USER),
        (values.Url, ["http://a:9090/api/v1", "http://a:9090//api/v1/"], A_BASE),
        (values.Url, ["http://a:9090/api/v1/query", "http://a:9090/graph"], A_BASE),
        (values.Url, ["http://a:9090/vmui", "http://a:9090/graph/"], A_BASE),
        (values.ListenAddress, ["6000", "", ":65536", ":x", ":-1", "::1:6000"], AN_ADDRESS),
        (values.ListenAddress, ["[1.2.3.4]:1", "[::g]:1", "[::1%1]:1", "a b:1"], AN_ADDRESS),
        (values.ListenAddress, ["http://a:1", "me@a:1", "a:1/", ":1\n"], AN_ADDRESS),
        (values.Targets, ["exporter:9400", "dns://a:1", "http://a#b", "dns+http://"], A_TARGET),
        (values.Targets, ["https://me@exporter:9400/metrics"], A_USER),
        (values.Targets, ["", " , ,", []], "at least 1 item"),
        (values.Peers, ["keda-gpu-scaler:8080", "http://a:8080/alerts", "grpc://a"], A_PEER),
        (values.Peers, ["http://a?b", "http://a#b"], A_PEER),
        (values.Headers, ["tenant", "{", "a=1,b"], PAIRS),
        (values.Headers, ['{"a": 1}', {"a": {}}], "Input should be a valid string"),
        (values.Headers, ["a b=1", "=1", {"a\n": "1"}], A_PATTERN),
        (values.Headers, [{"a": "x\r\ny: z"}, {"a": "ü"}], "header values that HTTP allows"),
        (values.Token, ["", "a b", "a\nb", "ä"], A_TOKEN),
        (values.HeaderName, ["", "a b", "a:", "a\nb", "é"], A_PATTERN),
        (values.Parameter, ["", "a b", "a&b", "a=b"], A_PATTERN),
        (values.Parameter, ["query", "time", "timeout"], "a URL parameter that no query has"),
        (values.Matchers, ["cluster"], "matchers such as"),
        (MINUTES, ["15"], "a number needs a unit"),
        (MINUTES, ["999ms", 1, float("nan"), f"{'9' * 400}h"], "a duration of at least 1m"),
        (values.Bytes, ["-1", "1.5", "64MB", "MiB", "", "9" * 16], A_SIZE),
        (values.Bytes, ["0", "0MiB"], "greater than or equal to 1"),
        (values.Count, ["0", "-1"], "greater than or equal to 1"),
        (values.Count, ["1.5", "many", "²", ""], "a valid integer"),
        (values.Namespaces, [["a", ["b"]], {"a": "b"}, 1], A_NAMESPACE),
        (values.Namespaces, ["", ",", "*,ml", "team-*", "Team", "a.b", "a" * 64], A_NAMESPACE),
        (values.Names, ["Nic*"], "names of objects such as nic,"),
        (values.Name, ["", "a\nb"], A_PATTERN),
        (values.SourceName, ["", "EU", "-a", "a-", "a.b", "a" * 64, "a\n"], A_PATTERN),
    ],
)
def test_what_is_refused(
    form: object, wrong: list[object], expected: str, subtests: pytest.Subtests
) -> None:
    for value in wrong:
        with subtests.test(value=value):
            assert expected in mistakes(form, value)


@pytest.mark.parametrize("form", [values.Secret, values.Token, values.Headers])
def test_what_stands_for_a_secret_where_settings_are_printed_is_no_secret(form: object) -> None:
    printed = {"a": "**********"} if form is values.Headers else "**********"
    assert "the secret itself, " in mistakes(form, printed)


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
def test_an_address_is_shown_as_written(text: str, host: str, port: int, explicit: str) -> None:
    address = values.address(text)
    assert address == Address(host, port)
    assert (str(address), address.explicit) == (text, explicit)
    assert values.address(address) is address
