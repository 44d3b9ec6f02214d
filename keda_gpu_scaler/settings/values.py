"""Text → value, one function for each kind of setting, including those of HTTP requests.

Each takes text or a value that is valid already, and raises ValueError with what was expected;
`loading` puts the name of the setting in front. Files are read here only to check that they can be
read; there is no access to the network.
"""

import importlib.util
import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, PlainSerializer, SecretStr, TypeAdapter

from keda_gpu_scaler.query.promql.policy import parsed_matchers
from keda_gpu_scaler.query.promql.tree import Matcher
from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.trigger import access

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_PARAMETER = re.compile(r"[0-9A-Za-z_.-]+")
_REGION = re.compile(r"[a-z]+(-[a-z]+)+-[0-9]{1,2}")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_QUERY_PARAMETERS = ("query", "time", "timeout")
_PAIRS = TypeAdapter(dict[str, SecretStr])


def url(value: object) -> str:
    """Read the address of an HTTP API; the paths of its endpoints are added to it."""
    expected = "a URL such as http://prometheus:9090"
    parts = _split(str(value), ("http", "https"), expected)
    if parts.query or parts.fragment:
        raise ValueError(f"{expected}, without ? and #")
    return parts.geturl().rstrip("/")


def targets(value: object) -> tuple[str, ...]:
    """Read exporter endpoints, separated by commas or as a list; the path is /metrics by default.

    `http://host:port/path` is one endpoint, `dns+http://name:port/path` is one for every address of
    the name.
    """
    texts = value if isinstance(value, list | tuple) else str(value).split(",")
    found = [_target(text) for text in (str(text).strip() for text in texts) if text]
    if not found:
        raise ValueError("at least one target such as http://10.0.0.1:9400/metrics")
    return tuple(dict.fromkeys(found))


def without_query(url: str) -> str:
    """Return a URL as it may be shown: its query can hold a token."""
    before, mark, _ = url.partition("?")
    return f"{before}?***" if mark else url


def _target(text: str) -> str:
    expected = (
        "targets such as http://10.0.0.1:9400/metrics (one exporter) or "
        "dns+http://dcgm-exporter.gpu:9400/metrics (every address of the name)"
    )
    parts = _split(text, ("http", "https", "dns+http", "dns+https"), expected)
    if parts.fragment:
        raise ValueError(f"{expected}, without #")
    return parts._replace(path=parts.path or "/metrics").geturl()


def peers(value: object) -> tuple[str, ...]:
    """Read the addresses of other replicas of the scaler, separated by commas or as a list."""
    texts = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(
        dict.fromkeys(_peer(text) for text in (str(text).strip() for text in texts) if text)
    )


def _peer(text: str) -> str:
    expected = (
        "addresses of replicas such as http://10.0.0.1:8080 (one) or "
        "dns+http://keda-gpu-scaler:8080 (every address of the name)"
    )
    parts = _split(text, ("http", "https", "dns+http", "dns+https"), expected)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"{expected}, without a path")
    return parts._replace(path="").geturl()


def _split(text: str, schemes: tuple[str, ...], expected: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_complete = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ValueError(expected) from error
    if "@" in parts.netloc:
        raise ValueError(
            f"{expected}, without a user or password: those have settings of their own "
            "(username and password, bearer_token or bearer_token_file, headers)"
        )
    if not is_complete or not text.isprintable() or " " in text:
        raise ValueError(expected)
    return parts


def secret(value: object) -> object:
    """Return a secret, unless it is what stands for one where settings are shown."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if isinstance(text, str) and text and not text.strip("*"):
        raise ValueError(
            "the secret itself, and not the asterisks that serve --print-config shows for it: "
            "write the secret, or leave the setting out"
        )
    return value


def headers(value: object) -> Mapping[str, SecretStr]:
    """Read HTTP headers: a mapping, a JSON object, or `name=value,name=value`."""
    try:
        found = _PAIRS.validate_python(_pairs(value) if isinstance(value, str) else value)
    except ValueError:
        # Not chained: the cause shows values.
        raise ValueError('name=value,name=value or {"name": "value"}') from None
    for name, text in found.items():
        secret(text)
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(text.get_secret_value())):
            raise ValueError("header names and values that HTTP allows: ASCII without line breaks")
    return found


def _pairs(text: str) -> object:
    if text.startswith("{"):
        return json.loads(text)
    pairs = (pair.split("=", 1) for pair in text.split(","))
    return {name.strip(): content.strip() for name, content in pairs}


def header_name(value: object) -> str:
    """Read the name of a header."""
    if _HEADER_NAME.fullmatch(str(value)) is None:
        raise ValueError("the name of a header such as X-Scope-OrgID")
    return str(value)


def parameter(value: object) -> str:
    """Read the name of a URL parameter; the parameters of a query cannot be used."""
    if _PARAMETER.fullmatch(str(value)) is None or value in _QUERY_PARAMETERS:
        raise ValueError("the name of a URL parameter such as namespace")
    return str(value)


def matchers(value: object) -> tuple[Matcher, ...]:
    """Read label matchers as written between the braces of a PromQL selector."""
    return value if isinstance(value, tuple) else parsed_matchers(str(value))


def token(value: object) -> str:
    """Read a bearer token as written in an Authorization header."""
    secret(value)
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or _TOKEN.fullmatch(text) is None:
        raise ValueError("a token of visible ASCII characters")
    return text


Secret = Annotated[SecretStr, BeforeValidator(secret)]
Token = Annotated[SecretStr, BeforeValidator(token)]
Headers = Annotated[Mapping[str, SecretStr], BeforeValidator(headers)]
HeaderName = Annotated[str, BeforeValidator(header_name)]
Parameter = Annotated[str, BeforeValidator(parameter)]
Matchers = Annotated[
    tuple[Matcher, ...],
    BeforeValidator(matchers),
    PlainSerializer(lambda found: ",".join(map(str, found))),
]
Url = Annotated[str, BeforeValidator(url)]
Targets = Annotated[
    tuple[str, ...],
    BeforeValidator(targets),
    PlainSerializer(lambda found: [without_query(target) for target in found]),
]
Peers = Annotated[tuple[str, ...], BeforeValidator(peers)]


_HOST = re.compile(r"[0-9A-Za-z._:-]*")
_SIZE = re.compile(r"([0-9]{1,15})(?:([KMG]i)B?)?")
_BYTES_PER_UNIT = {None: 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class Address(NamedTuple):
    """The address to listen on; an empty host means every address of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the written form: `:6000`, `127.0.0.1:6000`, `[::1]:6000`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def explicit(self) -> str:
        """The address with a host in every case, as gRPC needs it."""
        return str(self._replace(host=self.host or "::"))


def address(value: object) -> Address:
    """Read `:port`, `host:port` or `[::1]:port`; port 0 takes a free one."""
    if isinstance(value, Address):
        return value
    try:
        parts = urlsplit(f"//{value}")
        found = Address(parts.hostname or "", -1 if parts.port is None else parts.port)
    except ValueError:
        found = None
    if found is None or str(found) != str(value).lower() or not _HOST.fullmatch(found.host):
        raise ValueError("an address such as :6000, 127.0.0.1:6000 or [::1]:6000")
    return found


def seconds(minimum: float) -> Callable[[object], float]:
    """Return a reader of durations that refuses anything shorter than `minimum`."""

    def read(value: object) -> float:
        given = value if isinstance(value, int | float) else durations.parse(str(value))
        if not (math.isfinite(given) and given >= minimum):
            raise ValueError(f"a duration of at least {durations.text(minimum)}")
        return float(given)

    return read


def size(value: object) -> int:
    """Read a number of bytes: `1048576`, `64MiB`, `1Gi`."""
    found = _SIZE.fullmatch(str(value))
    if found is None or int(found[1]) == 0:
        raise ValueError("a number of bytes such as 1048576, 64MiB or 1GiB")
    return int(found[1]) * _BYTES_PER_UNIT[found[2]]


def size_text(count: int) -> str:
    """Return the written form of a size: `64MiB`."""
    for unit in ("Gi", "Mi", "Ki"):
        if count % _BYTES_PER_UNIT[unit] == 0:
            return f"{count // _BYTES_PER_UNIT[unit]}{unit}B"
    return str(count)


def count(value: object) -> int:
    """Read a whole number of at least 1."""
    text = str(value)
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise ValueError("a whole number of at least 1")
    return int(text)


def flag(value: object) -> bool:
    """Read `true` or `false`."""
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


def traces(value: object) -> bool:
    """Read whether to send traces, and check that their optional libraries are installed."""
    is_wanted = flag(value)
    if is_wanted and not _is_installed("opentelemetry.sdk", "opentelemetry.exporter.otlp"):
        raise ValueError("false, or the extra otel: pip install '.[otel]' in a checkout")
    return is_wanted


def aws_region(value: object) -> str:
    """Read an AWS region to sign requests for, and check that what signs them is installed."""
    if not _is_installed("botocore.auth"):
        raise ValueError("nothing, or the extra aws: pip install 'keda-gpu-scaler[aws]'")
    if _REGION.fullmatch(str(value)) is None:
        raise ValueError("an AWS region such as eu-central-1")
    return str(value)


def _is_installed(*modules: str) -> bool:
    try:
        return all(importlib.util.find_spec(name) for name in modules)
    except ModuleNotFoundError:  # the parent package is not installed
        return False


def readable_file(value: object) -> Path:
    """Read the path of a file that this process can read."""
    path = Path(str(value))
    try:
        path.read_bytes()
    except OSError as error:
        raise ValueError(f"a file this process can read ({error.strerror})") from error
    return path


def readable_folder(value: object) -> Path:
    """Read the path of a folder that this process can list."""
    path = Path(str(value))
    try:
        next(path.iterdir(), None)
    except OSError as error:
        raise ValueError(f"a folder this process can list ({error.strerror})") from error
    return path


def source_name(value: str) -> str:
    """Read the name of a source, as triggers use it."""
    if _LABEL.fullmatch(value) is None:
        raise ValueError("a source name of lower-case letters, digits and inner dashes, 63 at most")
    return value


def name(value: object) -> str:
    """Read the name of an object in a database, or a placeholder for such a name."""
    text = str(value)
    if not text or not text.isprintable():
        raise ValueError("a name of visible characters")
    return text


def namespaces(value: object) -> access.Namespaces:
    """Read names of namespaces, separated by commas or as a list, or `*` for all."""
    if isinstance(value, access.Namespaces):
        return value
    texts = value if isinstance(value, list | tuple) else str(value).split(",")
    found = frozenset(text for text in (str(text).strip() for text in texts) if text)
    if found == {"*"}:
        return access.EVERY_NAMESPACE
    if not found or not all(map(workload.is_namespace, found)):
        raise ValueError("namespaces such as team-a,team-b, or * alone for every one")
    return access.Namespaces(found)


def _listed(found: frozenset[str]) -> str:
    return ",".join(sorted(found))


def names(value: object) -> frozenset[str]:
    """Read names of Kubernetes objects, separated by commas or as a list."""
    texts = value if isinstance(value, list | tuple | frozenset) else str(value).split(",")
    found = frozenset(text for text in (str(text).strip() for text in texts) if text)
    if not all(map(workload.is_name, found)):
        raise ValueError("names of objects such as nic,rdma.example.com")
    return found


ListenAddress = Annotated[Address, BeforeValidator(address), PlainSerializer(str)]
Seconds = Annotated[float, BeforeValidator(seconds(0.0))]
PositiveSeconds = Annotated[float, BeforeValidator(seconds(0.1))]
Bytes = Annotated[int, BeforeValidator(size)]
Count = Annotated[int, BeforeValidator(count)]
Traces = Annotated[bool, BeforeValidator(traces)]
Region = Annotated[str, BeforeValidator(aws_region)]
Flag = Annotated[bool, BeforeValidator(flag)]
ReadableFile = Annotated[Path, BeforeValidator(readable_file)]
ReadableFolder = Annotated[Path, BeforeValidator(readable_folder)]
Namespaces = Annotated[access.Namespaces, BeforeValidator(namespaces), PlainSerializer(str)]
Names = Annotated[frozenset[str], BeforeValidator(names), PlainSerializer(_listed)]
Name = Annotated[str, BeforeValidator(name)]
SourceName = Annotated[str, BeforeValidator(source_name)]
