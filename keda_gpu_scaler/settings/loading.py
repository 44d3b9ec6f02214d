"""From the environment and the file to `Settings`, or to every mistake in them at once."""

import os
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import names, report
from keda_gpu_scaler.settings.process import Settings

# Kubernetes puts the addresses of Services into the environment, and those of one that is called
# keda-gpu-scaler or keda-gpu-scaler-something under our own prefix.
_SERVICE_LINK = re.compile(
    rf"{names.PREFIX}(\w+_)?"
    r"(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the process settings; the environment wins over the file, setting by setting.

    An empty variable counts as not set: charts write those for what nobody filled in.

    Args:
        environ: the environment; this process's own when left out.

    Raises:
        errors.SettingsError: something is wrong; the message names every wrong setting.
    """
    variables = {
        name: value.strip()
        for name, value in sorted((os.environ if environ is None else environ).items())
        if name.startswith(names.PREFIX) and value.strip() and not _SERVICE_LINK.fullmatch(name)
    }
    try:
        return Settings(**_environment(variables))
    except ValidationError as error:
        # The cause stays out: it shows values, secrets among them.
        raise errors.SettingsError(report.message(error, variables)) from None


def _environment(variables: Mapping[str, str]) -> dict[str, Any]:
    keys = {row.variable: names.PREFIX + row.key for row in describe()}
    given, unknown = names.divide(variables, keys)
    source = EnvSettingsSource(Settings)
    source.env_vars = {keys[name]: value for name, value in given.items()}
    return source() | unknown


def describe() -> list[names.Row]:
    """Return every setting that has a name of its own, in the order of the models."""
    return list(names.rows(Settings))
