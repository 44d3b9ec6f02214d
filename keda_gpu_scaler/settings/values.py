"""Types of settings: text → value, where pydantic has no type that reads the text.

A mistake is a ValueError that says what was expected; `loading` writes the name of the setting and
its value in front. Files are only read to check that this process can read them.
"""

import importlib
import json
import math
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    ValidationInfo,
)

from keda_gpu_scaler.promql.policy import parsed_matchers
from keda_gpu_scaler.promql.tree import Matcher
from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.trigger import access


def needs(*partners: str) -> AfterValidator:
    """Refuse a setting without one of these settings, which are read before it."""

    def check(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - of any setting
        # A partner with a mistake of its own is missing from the data.
        if value and not any(info.data.get(partner, True) for partner in partners):
            raise ValueError(f"{' or '.join(partners)} with it")
        return value

    return AfterValidator(check)


def without(*others: str) -> AfterValidator:
    """Refuse a setting beside any of these settings, which are read before it."""

    def check(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - of any setting
        for other in others:
            if value is not None and info.data.get(other) is not None:
                raise ValueError(f"no {other} beside it")
        return value

    return AfterValidator(check)


def key_of(setting: str) -> AfterValidator:
    """Refuse a key that is not the one of the certificate in a setting that is read before it."""

    def check(key: Path | None, info: ValidationInfo) -> Path | None:
        cert = info.data.get(setting)
        if cert is not None:
            try:
                # Without a password OpenSSL would ask for one at the terminal.
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, lambda: "")
            except OSError as error:  # ssl.SSLError is one, often without a reason
                why = getattr(error, "reason", error.strerror) or "no key in PEM"
                expected = f"the unencrypted key of the PEM certificate in {cert} ({why})"
                raise ValueError(expected) from error
        return key

    return AfterValidator(check)


def _needs_module(module: str, expected: str) -> AfterValidator:
    """Refuse a setting that is on while the extra with this module is not installed."""

    def check(value: Any) -> Any:  # noqa: ANN401 - of any setting
        try:
            if value:
                importlib.import_module(module)
        except ImportError as error:
            raise ValueError(expected) from error
        return value

    return AfterValidator(check)


def _split(value: object) -> object:
    if not isinstance(value, str):
        return value
    return [item.strip() for item in value.split(",") if item.strip()]


_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:]+)\]|([0-9A-Za-z._-]*)):([0-9]{1,5})")
_LAST_PORT = 65_535


class Address(NamedTuple):
    """The address to listen on; an empty host means every address of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def explicit(self) -> str:
        return str(self._replace(host=self.host or "::"))


def address(value: object) -> Address:
    """Read `:port`, `host:port` or `[::1]:port`; port 0 takes a free one."""
    if isinstance(value, Address):
        return value
    match = _ADDRESS.fullmatch(str(value))
    if match is None or int(match[3]) > _LAST_PORT:
        raise ValueError("an address such as :6000, 127.0.0.1:6000 or [::1]:6000")
    return Address(match[1] or match[2] or "", int(match[3]))


def _url_check(
    expected: str,
    *absent: str,
    schemes: tuple[str, ...] = ("http", "https", "dns+http", "dns+https"),
    path: str = "",
) -> AfterValidator:
    """Return a check of a URL without the absent parts; `path` is its path if it has none."""

    def check(text: str) -> str:
        try:
            parts = urlsplit(text)
            is_complete = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        except ValueError as error:
            raise ValueError(expected) from error
        if "@" in parts.netloc:
            raise ValueError(
                f"{expected}, without a user or password: those have separate settings "
                "(username and password, bearer_token or bearer_token_file, headers)"
            )
        if not is_complete or not text.isprintable() or " " in text:
            raise ValueError(expected)
        for part in absent:
            if getattr(parts, part).strip("/"):
                raise ValueError(f"{expected}, without a {part}")
        url_path = parts.path or path if path else parts.path.rstrip("/")
        return parts._replace(path=url_path).geturl()

    return AfterValidator(check)


_BEYOND_BASE = re.compile("/+(api/v1(/.*)?|graph|vmui)$")
"""What people copy with a URL from documentation, or from the page of a server in a browser."""


def _check_base(url: str) -> str:
    base = _BEYOND_BASE.sub("", url)
    if base != url:
        raise ValueError(f"the base URL {base}: the scaler adds the path of each query")
    return url


def _without_query(url: str) -> str:
    before, mark, _ = url.partition("?")
    return f"{before}?***" if mark else url


def _secret_check(pattern: str, expected: str) -> AfterValidator:
    """Refuse a secret of another form, and what stands for one where settings are printed."""

    def check(value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if re.fullmatch(pattern, text, re.DOTALL) is None:
            raise ValueError(expected)
        if text and not text.strip("*"):
            raise ValueError(
                "the secret itself, not the asterisks that serve --print-config shows for it: "
                "write the secret, or leave the setting out"
            )
        return value

    return AfterValidator(check)


def _read_headers(value: object) -> object:
    """Read headers from a JSON object or `name=value,name=value`; a mapping stays one."""
    if not isinstance(value, str):
        return value
    try:
        if value.startswith("{"):
            return json.loads(value)
        pairs = (pair.split("=", 1) for pair in value.split(","))
        return {name.strip(): content.strip() for name, content in pairs}
    except (ValueError, RecursionError):
        # Not chained: the cause shows values.
        raise ValueError('name=value,name=value or {"name": "value"}') from None


def _check_parameter(name: str) -> str:
    if name in {"query", "time", "timeout"}:
        raise ValueError("the name of a URL parameter that no query has, such as namespace")
    return name


def seconds(minimum: float) -> Callable[[object], float]:
    """Return a reader of durations that refuses anything shorter than `minimum`."""

    def read(value: object) -> float:
        duration = value if isinstance(value, int | float) else durations.parse(str(value))
        if not (math.isfinite(duration) and duration >= minimum):
            raise ValueError(f"a duration of at least {durations.text(minimum)}")
        return float(duration)

    return read


_BYTES_PER_UNIT = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def _read_byte_count(value: object) -> int:
    """Read a number of bytes: `1048576`, `64MiB`, or `64Mi` as Kubernetes writes it."""
    match = re.fullmatch(r"([0-9]{1,15})(?:([KMG]i)B?)?", str(value))
    if match is None:
        raise ValueError("a number of bytes such as 1048576, 64MiB or 1GiB")
    return int(match[1]) * _BYTES_PER_UNIT[match[2] or ""]


def _check_certificates(path: Path) -> Path:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except OSError as error:  # ssl.SSLError is one, often without a reason
        why = getattr(error, "reason", error.strerror) or "no certificate in PEM"
        raise ValueError(f"a PEM file with certificates ({why})") from error
    return path


def _read_namespaces(value: object) -> access.Namespaces:
    """Read names of namespaces, separated by commas or as a list, or `*` for all."""
    if isinstance(value, access.Namespaces):
        return value
    items = _split(value)
    if items == ["*"]:
        return access.EVERY_NAMESPACE
    names = items if isinstance(items, list) else []
    if not names or not all(
        isinstance(name, str) and workload.is_namespace(name) for name in names
    ):
        raise ValueError("namespaces such as team-a,team-b, or only * for all")
    return access.Namespaces(frozenset(names))


_RESOURCE = re.compile(r"[a-z0-9][-a-z0-9.]{0,252}/[-a-zA-Z0-9_.]{0,63}")


def _check_object_name(name: str) -> str:
    if not workload.is_name(name):
        raise ValueError("names of objects such as nic,rdma.example.com")
    return name


def _check_resource(name: str) -> str:
    if _RESOURCE.fullmatch(name) is None:
        raise ValueError("beginnings of extended resources such as example.com/,example.org/nic")
    return name


ListenAddress = Annotated[Address, BeforeValidator(address), PlainSerializer(str)]
Url = Annotated[
    str,
    _url_check(
        "a URL such as http://prometheus:9090", "query", "fragment", schemes=("http", "https")
    ),
    AfterValidator(_check_base),
]
Target = Annotated[
    str,
    _url_check(
        "targets such as http://10.0.0.1:9400/metrics (one exporter) or "
        "dns+http://dcgm-exporter.gpu:9400/metrics (every address of the name)",
        "fragment",
        path="/metrics",
    ),
    PlainSerializer(_without_query),
]
Targets = Annotated[tuple[Target, ...], BeforeValidator(_split), Field(min_length=1)]
Peer = Annotated[
    str,
    _url_check(
        "addresses of replicas such as http://10.0.0.1:8080 (one) or "
        "dns+http://keda-gpu-scaler:8080 (every address of the name)",
        *("path", "query", "fragment"),
    ),
]
Peers = Annotated[tuple[Peer, ...], BeforeValidator(_split)]

Secret = Annotated[SecretStr, _secret_check(".*", "any text")]
Token = Annotated[SecretStr, _secret_check(r"[\x21-\x7e]+", "a token of visible ASCII characters")]
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[
    SecretStr,
    _secret_check(r"[\t\x20-\x7e]*", "header values that HTTP allows: ASCII without line breaks"),
]
Headers = Annotated[dict[HeaderName, HeaderValue], BeforeValidator(_read_headers)]
Parameter = Annotated[str, Field(pattern=r"^[0-9A-Za-z_.-]+$"), AfterValidator(_check_parameter)]
Region = Annotated[
    str,
    Field(pattern=r"^[a-z]+(-[a-z]+)+-[0-9]{1,2}$"),
    _needs_module("botocore.auth", "nothing, or the extra aws: pip install 'keda-gpu-scaler[aws]'"),
]
Traces = Annotated[
    bool,
    _needs_module(
        "opentelemetry.exporter.otlp.proto.grpc",
        "false, or the extra otel: pip install '.[otel]' in a checkout",
    ),
]
Matchers = Annotated[
    tuple[Matcher, ...],
    BeforeValidator(lambda value: parsed_matchers(value) if isinstance(value, str) else value),
    PlainSerializer(lambda matchers: ",".join(map(str, matchers))),
]

Seconds = Annotated[float, BeforeValidator(seconds(0.0))]
PositiveSeconds = Annotated[float, BeforeValidator(seconds(0.1))]
Bytes = Annotated[int, BeforeValidator(_read_byte_count), Field(ge=1)]
Count = Annotated[int, Field(ge=1)]
CertificateFile = Annotated[Path, AfterValidator(_check_certificates)]
Namespaces = Annotated[access.Namespaces, BeforeValidator(_read_namespaces), PlainSerializer(str)]
ObjectName = Annotated[str, AfterValidator(_check_object_name)]
_SORTED = PlainSerializer(lambda names: ",".join(sorted(names)))
Names = Annotated[frozenset[ObjectName], BeforeValidator(_split), _SORTED]
Resource = Annotated[str, AfterValidator(_check_resource)]
Resources = Annotated[frozenset[Resource], BeforeValidator(_split), _SORTED]
Name = Annotated[str, Field(pattern=r"^[ \p{L}\p{M}\p{N}\p{P}\p{S}]+$")]
"""The name of an object in a database, or a placeholder for such a name."""
Jobs = Annotated[frozenset[Name], BeforeValidator(_split), _SORTED]
SourceName = Annotated[str, Field(pattern=r"^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$")]
