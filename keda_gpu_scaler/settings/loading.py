"""Environment and file → `Settings`, or one error that lists every mistake in them.

The file uses the names of the environment, in lower case and without the prefix; in addition it can
define named sources. Its values are text, as in the environment: a token of digits stays one.

Each mistake shows the setting's name as it was written, its value and what was expected. Secrets
are never shown, nor values that may hold one: of an unknown setting, of a whole source, or the part
of a URL before an @ or after a ?.
"""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings.process import Settings
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.transport import proxies

PREFIX = "KEDA_GPU_SCALER_"
# Kubernetes puts the addresses of Services into the environment. The variables of a Service named
# keda-gpu-scaler or keda-gpu-scaler-something have the same prefix as the settings.
_SERVICE_LINK = re.compile(
    rf"{PREFIX}(\w+_)?(SERVICE_HOST=.*|SERVICE_PORT(_\w+)?=\d+|PORT_\d+_[A-Z]+_[A-Z]+=.*"
    r"|PORT(_\d+_[A-Z]+)?=(tcp|udp|sctp)://.*)"
)
_SHOWN_CHARACTERS = 100


def fields(model: type[BaseModel] = Settings, start: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every setting of a model by its name in the file, with `start` in front of the name."""
    for field in model.model_fields.values():
        name = str(field.validation_alias)
        if name in KINDS:
            yield from fields(KINDS[name], f"{name}_")
        elif name not in ("type", "sources"):
            yield start + name, field


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the process settings; the environment wins over the file, setting by setting.

    An empty value counts as not set: charts write one for each value that was not filled in. The
    message of a SettingsError names every wrong setting.
    """
    environ = os.environ if environ is None else environ
    variables = {
        name: value.strip()
        for name, value in sorted(environ.items())
        if name.startswith(PREFIX)
        and value.strip()
        and not _SERVICE_LINK.fullmatch(f"{name}={value.strip()}")
    }
    mistakes: list[str] = []
    path, values = variables.get(f"{PREFIX}CONFIG", ""), {}
    try:
        values = _read(Path(path)) if path else {}
    except ValueError as error:
        mistakes.append(f'{PREFIX}CONFIG: "{path}"; expected {error}')
    sources = values.pop("sources", {})
    places = {key: f"{key} in {path}" for key in values}
    for variable, value in variables.items():
        key = variable.removeprefix(PREFIX).lower()
        values[key], places[key] = value, variable
    known_keys = {key for key, _ in fields()}
    mistakes += [
        _unknown_setting(place, key, known_keys)
        for key, place in places.items()
        if key not in known_keys
    ]
    given: dict[str, Any] = {"sources": sources}
    for key in values.keys() & known_keys:
        kind, _, name = key.partition("_")
        if kind in KINDS:
            given.setdefault(kind, {})[name] = values[key]
        else:
            given[key] = values[key]
    settings = None
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        # A default that depends on another setting fails together with it.
        mistakes += [
            _mistake(detail, places, path)
            for detail in error.errors(include_url=False)
            if detail["type"] != "default_factory_not_called"
        ]
    mistakes += proxies.mistakes()
    if settings is not None and not mistakes:
        return settings
    count = durations.counted(len(mistakes), "mistake")
    lines = [f"{count} in the process settings:", *(f"- {mistake}" for mistake in mistakes)]
    # Not chained: the cause shows values, secrets among them.
    raise errors.SettingsError("\n".join(lines)) from None


def _read(path: Path) -> dict[str, Any]:
    """Return the settings of the file; empty ones are left out."""
    import yaml  # noqa: PLC0415 - for a file only

    try:
        # This loader makes nothing but text, lists and mappings.
        loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        content = _without_empty(loaded or {})
    except OSError as error:
        raise ValueError(f"a YAML file that this process can read ({error.strerror})") from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        # The text of the error quotes the line, which may hold a secret.
        mark = getattr(error, "problem_mark", None)
        where = f"; line {mark.line + 1} is not: {getattr(error, 'problem', '')}" if mark else ""
        raise ValueError(f"YAML text in UTF-8{where}") from None
    if not isinstance(content, dict) or "config" in content:
        raise ValueError("a YAML mapping of names to values, without the name of another file")
    return content


def _without_empty(content: object) -> object:
    if not isinstance(content, dict):
        return content
    return {key: _without_empty(value) for key, value in content.items() if value != ""}


def _mistake(detail: ErrorDetails, places: Mapping[str, str], file: str) -> str:
    first, *inner = map(str, detail["loc"])
    if first == "sources":
        # After a source's name, pydantic puts its kind; all below the key is part of its value.
        name, kind, key = (*inner, "", "", "")[:3]
        place = ".".join(part for part in (first, name, key) if part)
        place += f" in {file}" if file else ""
        if detail["type"] == "extra_forbidden":
            known_keys = {key for key, _ in fields(KINDS[kind])}
            return _unknown_setting(place, key, known_keys)
    else:
        key = f"{first}_{inner[0]}" if first in KINDS else first
        place = places.get(key, PREFIX + key.upper())
    match detail["type"]:
        case "missing":
            expected = "it has to be set"
        case "union_tag_invalid" | "union_tag_not_found" | "model_attributes_type":
            expected = f"expected a mapping with the type {' or '.join(KINDS)}"
        case _:
            expected = re.sub("^(Value error,|Input should be)", "expected", detail["msg"])
    return f"{place}{_shown(key, detail['input'])}; {expected}"


def _unknown_setting(place: str, key: str, known_keys: Collection[str]) -> str:
    meant = errors.nearest(key, known_keys)
    if meant is None:
        return f"{place}: unknown setting"
    hint = PREFIX + meant.upper() if place.startswith(PREFIX) else meant
    return f"{place}: unknown setting; did you mean {hint}?"


def _shown(key: str, value: object) -> str:
    """Return the value of a setting as a mistake in it may show it; without a key, nothing."""
    if not key or not isinstance(value, str):
        return ""
    if key.endswith(("token", "password", "headers")):
        return ": a value that is not shown"
    without_user = re.sub(r"(?s)^(\S*?//)?.*@", r"\1***@", value)
    text = re.sub(r"(?s)\?.*", "?***", without_user)
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:_SHOWN_CHARACTERS]}..."
    return f": {json.dumps(text)}"
