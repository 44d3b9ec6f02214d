"""Text → value, one function for each kind of setting.

Each takes what somebody wrote, or a value that is right already, and raises ValueError with what
was expected; `report.py` puts the name of the setting in front. Files are read here only to see
that they can be read.
"""

import importlib.util
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import BeforeValidator, PlainSerializer

from keda_gpu_scaler import access, durations, workload

_HOST = re.compile(r"[0-9A-Za-z._:-]*")
_SIZE = re.compile(r"([0-9]{1,15})(?:([KMG]i)B?)?")
_BYTES_PER_UNIT = {None: 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class Address(NamedTuple):
    """Where to listen; an empty host stands for every address of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the form people write: `:6000`, `127.0.0.1:6000`, `[::1]:6000`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def explicit(self) -> str:
        """The same with a host in any case, as gRPC wants it."""
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
    """Make a reader of durations that refuses what is shorter than `minimum`."""

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
    """Return the form of a size that people write: `64MiB`."""
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
    """Read whether there are to be traces, which takes libraries that not everybody installs."""
    is_wanted = flag(value)
    if is_wanted and not _is_installed("opentelemetry.sdk", "opentelemetry.exporter.otlp"):
        raise ValueError("false, or the extra otel: pip install 'keda-gpu-scaler[otel]'")
    return is_wanted


def _is_installed(*modules: str) -> bool:
    try:
        return all(importlib.util.find_spec(name) for name in modules)
    except ModuleNotFoundError:  # not even what they are in
        return False


def readable_file(value: object) -> Path:
    """Read the path of a file that this process can read."""
    path = Path(str(value))
    try:
        path.read_bytes()
    except OSError as error:
        raise ValueError(f"a file this process can read ({error.strerror})") from error
    return path


def source_name(value: str) -> str:
    """Read the name by which triggers choose a source."""
    if _LABEL.fullmatch(value) is None:
        raise ValueError("a source name of lower-case letters, digits and inner dashes, 63 at most")
    return value


def name(value: object) -> str:
    """Read the name of something in a database, or a placeholder that stands for one."""
    text = str(value)
    if not text or not text.isprintable():
        raise ValueError("a name of visible characters")
    return text


def namespaces(value: object) -> access.Namespaces:
    """Read names of namespaces, separated by commas or as a list, or `*` for every one."""
    if isinstance(value, access.Namespaces):
        return value
    texts = value if isinstance(value, list | tuple) else str(value).split(",")
    found = frozenset(text for text in (str(text).strip() for text in texts) if text)
    if found == {"*"}:
        return access.EVERY_NAMESPACE
    if not found or not all(map(workload.is_namespace, found)):
        raise ValueError("namespaces such as team-a,team-b, or * alone for every one")
    return access.Namespaces(found)


ListenAddress = Annotated[Address, BeforeValidator(address), PlainSerializer(str)]
Seconds = Annotated[float, BeforeValidator(seconds(0.0))]
PositiveSeconds = Annotated[float, BeforeValidator(seconds(0.1))]
Bytes = Annotated[int, BeforeValidator(size)]
Count = Annotated[int, BeforeValidator(count)]
Traces = Annotated[bool, BeforeValidator(traces)]
Flag = Annotated[bool, BeforeValidator(flag)]
ReadableFile = Annotated[Path, BeforeValidator(readable_file)]
Namespaces = Annotated[access.Namespaces, BeforeValidator(namespaces), PlainSerializer(str)]
Name = Annotated[str, BeforeValidator(name)]
SourceName = Annotated[str, BeforeValidator(source_name)]
