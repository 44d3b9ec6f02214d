"""The settings file: YAML, whose values are read as text, as those of the environment are.

So `step: 15` is the same mistake as KEDA_GPU_SCALER_PROMETHEUS_STEP=15, and a token of digits stays
what it is.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from keda_gpu_scaler.settings import names, report


def read(path: str | None, mistakes: list[str]) -> dict[names.Path, report.Written]:
    """Return what the file says; nothing without a file.

    Args:
        path: where it is.
        mistakes: takes what is wrong with it.
    """
    if path is None:
        return {}
    try:
        content = _parse(Path(path).read_text(encoding="utf-8"))
        return dict(_entries(content, path, mistakes))
    except UnicodeDecodeError:
        expected = "YAML text in UTF-8"
    except OSError as error:
        expected = f"a YAML file that this process can read ({error.strerror})"
    except ValueError as error:
        expected = str(error)
    mistakes.append(f'{names.variable("config")}: "{path}"; expected {expected}')
    return {}


def _parse(text: str) -> Mapping[str, Any]:
    try:
        content = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but text
    except yaml.MarkedYAMLError as error:
        # The error's own text quotes the line, and the line may hold a secret.
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"YAML; line {line} is not: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("YAML without control characters, not too deep") from error
    return _mapping(content, "a YAML mapping of names to values")


def _mapping(value: object, expected: str) -> Mapping[str, Any]:
    if value in ("", None):
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(expected)  # noqa: TRY004 - it is the operator's mistake, not a caller's
    return value


def _entries(
    content: Mapping[str, Any], path: str, mistakes: list[str]
) -> Iterator[tuple[names.Path, report.Written]]:
    short_names = names.short_fields()
    known = {name for name in short_names if name != "config"} | {"sources"}
    for name, value in content.items():
        if name not in known:
            mistakes.append(report.unknown(f"{name} in {path}", name, known))
        elif name == "sources":
            yield from _sources(value, path)
        elif value != "":
            yield short_names[name], report.Written(f"{name} in {path}", value)


def _sources(value: object, path: str) -> Iterator[tuple[names.Path, report.Written]]:
    sources = _mapping(value, "`sources` to be a mapping of names to sources")
    for source, settings in sources.items():
        expected = f"`sources.{source}` to be a mapping of names to values"
        for name, setting in _mapping(settings, expected).items():
            if setting != "":
                written = report.Written(f"sources.{source}.{name} in {path}", setting)
                yield ("sources", source, name), written
