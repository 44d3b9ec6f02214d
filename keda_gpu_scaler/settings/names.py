"""The names of settings in the environment and in the YAML file, and their explanations.

Values in the file are text, as in the environment, so a token of digits is not changed. The file
uses the same names in lower case, and in addition it can define named sources.
"""

import contextlib
import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo
from pydantic_settings import YamlConfigSettingsSource

from keda_gpu_scaler.settings import ports, sources, values
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.trigger import access

PREFIX = "KEDA_GPU_SCALER_"
GROUPS: Mapping[str, type[BaseModel]] = {**sources.KINDS, "webhook": ports.WebhookSettings}
"""Groups of settings: their names begin with the same word, which is a field of the model."""
MEANT = {
    **dict.fromkeys(
        ("address", "bind", "grpc_port", "host", "listen", "p", "port"), "grpc_address"
    ),
    **dict.fromkeys(("http_port", "metrics_address", "metrics_port", "web_port"), "http_address"),
    **dict.fromkeys(("c", "config_file", "f", "file", "settings"), "config"),
    **dict.fromkeys(("d", "debug", "log", "q", "quiet", "v", "verbose"), "log_level"),
    **dict.fromkeys(("prometheus", "prometheus_address", "server", "url"), "prometheus_url"),
    **dict.fromkeys(("cert", "cert_file", "tls_cert", "tls_cert_file"), "grpc_cert_file"),
    **dict.fromkeys(("key", "key_file", "tls_key", "tls_key_file"), "grpc_key_file"),
    **dict.fromkeys(("ca_file", "client_ca", "client_ca_file"), "grpc_client_ca_file"),
    **dict.fromkeys(("interval", "scrape_interval"), "scrape_interval"),
    "kubeconfig": "kubernetes",
    "targets": "scrape_targets",
    "token": "http_token",
}
"""The setting by the name that people try for it."""


class Row(NamedTuple):
    """One setting: its variable, its key in the file, its default if it has one, its meaning."""

    variable: str
    key: str
    default: str
    meaning: str


def rows(model: type[BaseModel], start: str = "") -> Iterator[Row]:
    """Yield every setting of a model that has its own name, with `start` in front of the name."""
    for field in model.model_fields.values():
        name = str(field.validation_alias)
        if name in GROUPS:
            yield from rows(GROUPS[name], f"{name}_")
        elif name not in ("type", "sources"):
            meaning = " ".join((field.description or "").split())
            yield Row(
                f"{PREFIX}{start}{name}".upper(), start + name, _default(name, field), meaning
            )


def _default(name: str, field: FieldInfo) -> str:
    match field.default:
        case bool():
            return str(field.default).lower()
        case float(seconds):
            return durations.text(seconds)
        case int(size) if name.endswith("_bytes"):
            return values.size_text(size)
        case int() | str() | values.Address() | access.Namespaces():
            return str(field.default)
        case _:
            return ""


def divide(
    given: Mapping[str, Any], known: Collection[str], full: Callable[[str], str] = str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the given values into known settings and, by full name, hints for the unknown ones.

    The models forbid unknown names, and so report them together with all other mistakes.
    """
    settings = {name: value for name, value in given.items() if name in known}
    return settings, {full(name): _hint(name, known) for name in given if name not in known}


def _hint(name: str, known: Collection[str]) -> str:
    short = {each.removeprefix(PREFIX).lower(): each for each in known}
    tried = name.removeprefix(PREFIX).lower()
    near = difflib.get_close_matches(MEANT.get(tried, tried), short, n=1)
    return f"did you mean {short[near[0]]}?" if near else "expected a setting that exists"


class FileSource(YamlConfigSettingsSource):
    """The content of the file, nested as the models are."""

    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        with contextlib.suppress(ValueError):  # the setting `config` reports a file it cannot read
            return _read(file_path)
        return {}

    def __call__(self) -> dict[str, Any]:
        """Return the values by field; unknown names are kept, so that the models refuse them."""
        known = {row.key for row in rows(self.settings_cls)} - {"config"} | {"sources"}
        given, nested = divide(self.yaml_data, known, self._place)
        for key, value in given.items():
            kind, _, name = key.partition("_")
            if kind in GROUPS:
                nested.setdefault(kind, {})[name] = value
            elif key == "sources" and isinstance(value, dict):
                nested[key] = {source: self._source(source, value[source]) for source in value}
            else:
                nested[key] = value
        return nested

    def _source(self, source: str, content: Any) -> object:  # noqa: ANN401 - what the file says
        if not isinstance(content, dict) or content.get("type") not in KINDS:
            return content
        known = {row.key for row in rows(KINDS[content["type"]])} | {"type"}
        place = f"sources.{source}."
        given, unknown = divide(content, known, lambda name: self._place(place + name))
        return given | unknown

    def _place(self, name: str) -> str:
        return f"{name} in {self.yaml_file_path}"


def _read(path: Path | Traversable) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - for a file only

    try:
        text = path.read_text(encoding="utf-8")
        # This loader makes nothing but text, lists and mappings.
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except UnicodeDecodeError as error:
        raise ValueError("YAML text in UTF-8") from error
    except OSError as error:
        raise ValueError(f"a YAML file that this process can read ({error.strerror})") from error
    except yaml.MarkedYAMLError as error:
        # The text of the error quotes the line, which may hold a secret.
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"YAML; line {line} is not: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("YAML without control characters, not too deep") from error
    filled = _filled(content or {})
    if not isinstance(filled, dict):
        raise ValueError("a YAML mapping of names to values")  # noqa: TRY004 - the operator's error
    return filled


def _filled(value: object) -> object:
    """Leave out empty values: they count as not set."""
    if not isinstance(value, dict):
        return value
    return {name: _filled(inner) for name, inner in value.items() if inner != ""}


def _readable(path: Path) -> Path:
    _read(path)
    return path


SettingsFile = Annotated[Path, AfterValidator(_readable)]
