"""Text → value for what goes into HTTP requests: URLs, targets, peers, headers, tokens.

Like `values.py`: each raises ValueError with what was expected, and nothing is asked here.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, PlainSerializer, SecretStr, TypeAdapter

from keda_gpu_scaler.matchers import Matcher, parse

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_PARAMETER = re.compile(r"[0-9A-Za-z_.-]+")
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

    `http://host:port/path` is one endpoint, `dns+http://name:port/path` is every address that the
    name stands for.
    """
    texts = value if isinstance(value, list | tuple) else str(value).split(",")
    found = [_target(text) for text in (str(text).strip() for text in texts) if text]
    if not found:
        raise ValueError("at least one target such as http://10.0.0.1:9400/metrics")
    return tuple(dict.fromkeys(found))


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


def headers(value: object) -> Mapping[str, SecretStr]:
    """Read HTTP headers: a mapping, a JSON object, or `name=value,name=value`."""
    try:
        found = _PAIRS.validate_python(_pairs(value) if isinstance(value, str) else value)
    except ValueError:
        # The cause stays out: it shows values.
        raise ValueError('name=value,name=value or {"name": "value"}') from None
    for name, text in found.items():
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
    """Read the name of a URL parameter; those of a query are taken."""
    if _PARAMETER.fullmatch(str(value)) is None or value in _QUERY_PARAMETERS:
        raise ValueError("the name of a URL parameter such as namespace")
    return str(value)


def matchers(value: object) -> tuple[Matcher, ...]:
    """Read label matchers as they stand between the braces of a PromQL selector."""
    return value if isinstance(value, tuple) else parse(str(value))


def token(value: object) -> str:
    """Read a bearer token as it stands in an Authorization header."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or _TOKEN.fullmatch(text) is None:
        raise ValueError("a token of visible ASCII characters")
    return text


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
Targets = Annotated[tuple[str, ...], BeforeValidator(targets)]
Peers = Annotated[tuple[str, ...], BeforeValidator(peers)]
