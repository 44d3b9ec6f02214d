"""From the environment and the file to `Settings`, or to every mistake in them at once.

The environment wins over the file, setting by setting. An empty value counts as not set, because
charts and compose files write those for what nobody filled in.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import file, names, report
from keda_gpu_scaler.settings.process import Settings


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the process settings.

    Args:
        environ: the environment; this process's own when left out.

    Raises:
        errors.SettingsError: something is wrong; the message names every wrong setting.
    """
    given = {
        name: value.strip()
        for name, value in (os.environ if environ is None else environ).items()
        if name.startswith(names.PREFIX) and value.strip()
    }
    mistakes: list[str] = []
    written = file.read(given.get(names.variable("config")), mistakes)
    written |= _environment(given, mistakes)
    written = _settle_default(written, mistakes)
    try:
        settings = Settings.model_validate(_nested(written), by_alias=True, by_name=False)
    except ValidationError as error:
        mistakes += report.mistakes(error, written)
    if mistakes:
        # The cause stays out: it shows values, secrets among them.
        raise errors.SettingsError(report.message(mistakes)) from None
    return settings


def _environment(given: Mapping[str, str], mistakes: list[str]) -> dict[names.Path, report.Written]:
    short_names = names.short_fields()
    written = {}
    for name, value in sorted(given.items()):
        short = name.removeprefix(names.PREFIX).lower()
        if name == names.variable(short) and short in short_names:
            written[short_names[short]] = report.Written(name, value)
        elif not names.is_service_link(name):
            form = names.variable("{}")
            known = [known.upper() for known in short_names]
            mistakes.append(report.unknown(name, short.upper(), known, form))
    return written


def _settle_default(
    written: Mapping[names.Path, report.Written], mistakes: list[str]
) -> dict[names.Path, report.Written]:
    """Move what the short names say of a source to the source `default`, if it is theirs."""
    settled = {path: given for path, given in written.items() if path[0] not in names.KINDS}
    claims = dict(_claims(written))
    if len(claims) > 1:
        expected = f"only one of them to say what `{names.DEFAULT}` is"
        mistakes.append(report.together(claims.values(), expected))
        return settled
    for path, given in written.items():
        if path[0] in names.KINDS:
            kind = report.Written(given.name, path[0])
            settled["sources", names.DEFAULT, "type"] = kind
            settled["sources", names.DEFAULT, *path[1:]] = given
    return settled


def _claims(written: Mapping[names.Path, report.Written]) -> Iterator[tuple[str, str]]:
    """Yield who says what the source `default` is, and a setting that shows it."""
    for path, given in written.items():
        if path[0] in names.KINDS or path[:2] == ("sources", names.DEFAULT):
            yield path[0], given.name


def _nested(written: Mapping[names.Path, report.Written]) -> dict[str, Any]:
    nested: dict[str, Any] = {"sources": {}}
    for path, given in written.items():
        place = nested
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = given.value
    return nested
