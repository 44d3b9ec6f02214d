"""Environment and file → `Settings`, or one error that lists every mistake in them.

Each mistake shows the setting's name as it was written, its value and what was expected. Secrets
are never shown, nor values that may hold one: of an unknown setting, of a whole source, or the part
of a URL before an @ or after a ?.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import names, values
from keda_gpu_scaler.settings.process import Settings
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.transport import proxies

_SECRETS = frozenset({"bearer_token", "password", "headers", "token", "http_token"})
_URLS = ("url", "targets", "peers")
_SHOWN_CHARACTERS = 100
_BEFORE_AT = re.compile(r"[^/]*@")

Path = tuple[str, ...]


def mistakes_of(error: ValidationError, variables: Mapping[str, str]) -> list[str]:
    """Return a sentence for each mistake.

    Args:
        error: the mistakes that the model found.
        variables: the settings of the environment; all others come from the file.
    """
    # A default that depends on another setting fails together with it, and adds no information.
    return [
        _mistake(detail, variables)
        for detail in error.errors(include_url=False)
        if detail["type"] != "default_factory_not_called"
    ]


def _listed(mistakes: Sequence[str]) -> str:
    """Return one line per mistake below a heading."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return "\n".join([f"{count} in the process settings:", *(f"- {one}" for one in mistakes)])


def _mistake(detail: ErrorDetails, variables: Mapping[str, str]) -> str:
    path, found, context = _path(detail), detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            return f"{path[-1]}: unknown setting; {found}"
        case "missing":
            return f"{_name(path, variables, is_set=False)}: not set; expected a value"
        case "conflict" if len(context["fields"]) > 1:
            return f"{_conflicting(path, detail, variables)}; expected {context['expected']}"
        case "conflict":
            (field,), expected = context["fields"], context["expected"]
            path, found = (*path, field), found.get(field)
        case "of_another":
            path, found, expected = (context["setting"],), context["value"], context["expected"]
        case "union_tag_invalid" | "union_tag_not_found":
            path, found, expected = (*path, "type"), found.get("type"), " or ".join(KINDS)
        case "dict_type" | "model_attributes_type":
            found, expected = None, "a mapping of names to values"
        case "value_error":
            expected = str(context["error"])
        case _:
            expected = detail["msg"].removeprefix("Input should be ")
    return f"{_name(path, variables)}{_shown(path, found)}; expected {expected}"


def _path(detail: ErrorDetails) -> Path:
    """Return the path of the mistake, without the kind that pydantic puts after a source's name."""
    path = tuple(str(part) for part in detail["loc"] if part != "[key]")
    return path[:2] + path[3:] if path[0] == "sources" else path


def _name(path: Path, variables: Mapping[str, str], *, is_set: bool = True) -> str:
    """Return the name of a setting as the operator wrote it, or would write it."""
    key = ".".join(path) if path[0] == "sources" else "_".join(path)
    variable = names.PREFIX + key.upper()
    if path[0] != "sources" and (variable in variables or not is_set):
        return variable
    file = variables.get(f"{names.PREFIX}CONFIG")
    return f"{key} in {file}" if file else key


def _conflicting(path: Path, detail: ErrorDetails, variables: Mapping[str, str]) -> str:
    """Name the settings that are valid one by one, but not together."""
    if path == ("sources",):  # each of these settings defines `default`, and all of them are set
        written = {tuple(field.split(".")): True for field in detail["ctx"]["fields"]}
    else:
        written = {(*path, field): field in detail["input"] for field in detail["ctx"]["fields"]}
    return ", ".join(_name(field, variables, is_set=is_set) for field, is_set in written.items())


def _shown(path: Path, value: object) -> str:
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        return ""
    if path[-1] in _SECRETS:
        return ": a value that is not shown"
    safe = _BEFORE_AT.sub("***@", str(value))
    if path[-1].endswith(_URLS):
        safe = values.without_query(safe)
    shown = safe.encode("unicode_escape").decode("ascii")
    cut = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."
    return f': "{cut}"'


# Kubernetes puts the addresses of Services into the environment. The variables of a Service named
# keda-gpu-scaler or keda-gpu-scaler-something have the same prefix as the settings.
_SERVICE_LINK = re.compile(
    rf"{names.PREFIX}(\w+_)?"
    r"(SERVICE_HOST=.*|SERVICE_PORT(_\w+)?=\d+|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=.*"
    r"|PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://.*)"
)


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the process settings; the environment wins over the file, setting by setting.

    An empty variable counts as not set: charts write one for each value that was not filled in.

    Args:
        environ: the environment; by default that of this process.

    Raises:
        errors.SettingsError: something is wrong; the message names every wrong setting.
    """
    given = os.environ if environ is None else environ
    variables = {
        name: value.strip()
        for name, value in sorted(given.items())
        if name.startswith(names.PREFIX)
        and value.strip()
        and not _SERVICE_LINK.fullmatch(f"{name}={value.strip()}")
    }
    of_proxies = proxies.mistakes(given)
    try:
        found = Settings(**_environment(variables))
    except ValidationError as error:
        # Not chained: the cause shows values, secrets among them.
        mistakes = mistakes_of(error, variables) + of_proxies
        raise errors.SettingsError(_listed(mistakes)) from None
    if of_proxies:
        raise errors.SettingsError(_listed(of_proxies))
    return found


def _environment(variables: Mapping[str, str]) -> dict[str, Any]:
    keys = {row.variable: names.PREFIX + row.key for row in describe()}
    given, unknown = names.divide(variables, keys)
    source = EnvSettingsSource(Settings)
    source.env_vars = {keys[name]: value for name, value in given.items()}
    return source() | unknown


def describe() -> list[names.Row]:
    """Return every setting that has its own name, in the order of the models."""
    return list(names.rows(Settings))
