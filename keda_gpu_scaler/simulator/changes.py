"""Requested changes of the simulated cluster, checked before anything is changed.

Requests are the JSON body of a PUT and the `--workload` text of the command line. Every mistake
becomes one ValueError; its message names the field and what was expected.
"""

import dataclasses
import re
from collections.abc import Collection

import pydantic

from keda_gpu_scaler.simulator import cluster

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_WORKLOAD = re.compile(
    r"(?P<namespace>[^/=]+)/(?P<name>[^/=]+)"
    r"=(?P<replicas>\d+):(?P<load>\d+(\.\d+)?)(:(?P<gpus>\d+))?"
)


class Change(pydantic.BaseModel):
    """The fields of a workload that may be changed; those left out stay as they are."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    kind: cluster.Kind = cluster.Kind.DEPLOYMENT
    replicas: int = pydantic.Field(0, ge=0, le=10_000)
    load: float = pydantic.Field(0, ge=0, le=10_000_000)
    gpus_per_pod: int = pydantic.Field(1, ge=1, le=64)
    startup_seconds: float = pydantic.Field(0, ge=0, le=86_400)
    loading_percent: float = pydantic.Field(0, ge=0, le=100)
    draining_percent: float = pydantic.Field(0, ge=0, le=100)
    completed_percent: float | None = pydantic.Field(None, ge=0, le=100)

    def apply(self, wanted: cluster.Wanted) -> cluster.Wanted:
        """Return the wanted state with the given fields changed."""
        return dataclasses.replace(wanted, **self.model_dump(exclude_unset=True))


class NotJsonError(ValueError):
    """The body is not JSON."""


def from_json(body: bytes, changeable: Collection[str]) -> Change:
    """Read a JSON object; NotJsonError or ValueError says what is wrong with it."""
    change = _parsed(body)
    if refused := sorted(change.model_fields_set.difference(changeable)):
        those, can = ", ".join(refused), ", ".join(sorted(changeable))
        raise ValueError(f"{those}: not up to the simulator here; only {can} can change")
    return change


def _parsed(body: bytes) -> Change:
    try:
        return Change.model_validate_json(body)
    except pydantic.ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise NotJsonError(_sentence(error)) from error
        raise ValueError(_sentence(error)) from error


def key(namespace: str, name: str) -> cluster.Key:
    """Return the key of a workload; ValueError for a name that Kubernetes would not accept."""
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"namespace {namespace!r} is no Kubernetes namespace name")
    if not _NAME.fullmatch(name):
        raise ValueError(f"name {name!r} is no Kubernetes object name")
    return cluster.Key(namespace, name)


def from_text(text: str, template: cluster.Wanted) -> tuple[cluster.Key, cluster.Wanted]:
    """Read `namespace/name=replicas:load[:gpus]`; the rest comes from the template."""
    found = _WORKLOAD.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not namespace/name=replicas:load[:gpus]")
    return key(found["namespace"], found["name"]), checked(
        template,
        replicas=int(found["replicas"]),
        load=float(found["load"]),
        gpus_per_pod=int(found["gpus"] or template.gpus_per_pod),
    )


def checked(wanted: cluster.Wanted, **fields: object) -> cluster.Wanted:
    """Return the wanted state with fields changed to these values; ValueError for a wrong one."""
    try:
        return Change.model_validate(fields).apply(wanted)
    except pydantic.ValidationError as error:
        raise ValueError(_sentence(error)) from error


def _sentence(error: pydantic.ValidationError) -> str:
    mistakes = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return "; ".join(mistake.removeprefix(": ") for mistake in mistakes)
