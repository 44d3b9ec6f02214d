"""The YAML file, as a source of pydantic-settings.

Its values are text, as those of the environment are: a token of digits stays what it is. The names
are the same as well, in lower case; beside them it names sources.
"""

import contextlib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator
from pydantic_settings import YamlConfigSettingsSource

from keda_gpu_scaler.settings import names
from keda_gpu_scaler.settings.sources import KINDS


class FileSource(YamlConfigSettingsSource):
    """What the file says, nested as the models are."""

    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        with contextlib.suppress(ValueError):  # `config` refuses the file, and says why
            return _read(file_path)
        return {}

    def __call__(self) -> dict[str, Any]:
        """Return the values by field; what is no setting stays beside them, to be refused."""
        known = {row.key for row in names.rows(self.settings_cls)} - {"config"} | {"sources"}
        given, nested = names.divide(self.yaml_data, known, self._place)
        for key, value in given.items():
            kind, _, name = key.partition("_")
            if kind in names.GROUPS:
                nested.setdefault(kind, {})[name] = value
            elif key == "sources" and isinstance(value, dict):
                nested[key] = {source: self._source(source, value[source]) for source in value}
            else:
                nested[key] = value
        return nested

    def _source(self, source: str, content: Any) -> object:  # noqa: ANN401 - what the file says
        if not isinstance(content, dict) or content.get("type") not in KINDS:
            return content
        known = {row.key for row in names.rows(KINDS[content["type"]])} | {"type"}
        place = f"sources.{source}."
        given, unknown = names.divide(content, known, lambda name: self._place(place + name))
        return given | unknown

    def _place(self, name: str) -> str:
        return f"{name} in {self.yaml_file_path}"


def _read(path: Path | Traversable) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but text
    except UnicodeDecodeError as error:
        raise ValueError("YAML text in UTF-8") from error
    except OSError as error:
        raise ValueError(f"a YAML file that this process can read ({error.strerror})") from error
    except yaml.MarkedYAMLError as error:
        # The error's own text quotes the line, and the line may hold a secret.
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"YAML; line {line} is not: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("YAML without control characters, not too deep") from error
    filled = _filled(content or {})
    if not isinstance(filled, dict):
        raise ValueError("a YAML mapping of names to values")  # noqa: TRY004 - the operator's error
    return filled


def _filled(value: object) -> object:
    """Leave out what is empty: it counts as not set."""
    if not isinstance(value, dict):
        return value
    return {name: _filled(inner) for name, inner in value.items() if inner != ""}


def _readable(path: Path) -> Path:
    _read(path)
    return path


SettingsFile = Annotated[Path, AfterValidator(_readable)]
