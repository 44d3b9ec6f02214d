"""Requested changes of the simulated cluster, checked before anything is changed.

Requests are the JSON body of a PUT and the `--workload` text of the command line. Every mistake
becomes one ValueError; its message names the field and what was expected.
"""

import re
from collections.abc import Mapping

import pydantic

from keda_gpu_scaler.simulator.cluster import Cluster, Key, Wanted
from keda_gpu_scaler.spec.workload import is_name, is_namespace

_WORKLOAD = re.compile(
    r"(?P<namespace>[^/=]+)/(?P<name>[^/=]+)"
    r"=(?P<replicas>\d+):(?P<load>\d+(\.\d+)?)(:(?P<gpus>\d+))?"
)


def from_json(body: bytes, cluster: Cluster, workload: Key) -> Wanted:
    """Read a JSON object; fields that it leaves out stay as they are."""
    try:
        requested = Wanted.model_validate_json(body)
    except pydantic.ValidationError as error:
        raise ValueError(_sentence(error)) from error
    if unchangeable := sorted(requested.model_fields_set - cluster.changeable):
        fields, changeable = ", ".join(unchangeable), ", ".join(sorted(cluster.changeable))
        raise ValueError(f"{fields}: not up to the simulator here; only {changeable} can change")
    return cluster.wanted_of(workload).model_copy(update=requested.model_dump(exclude_unset=True))


def from_text(text: str) -> tuple[Key, Wanted]:
    """Read `namespace/name=replicas:load[:gpus]`."""
    parts = _WORKLOAD.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is not namespace/name=replicas:load[:gpus]")
    fields = {
        "replicas": int(parts["replicas"]),
        "load": float(parts["load"]),
        "gpus_per_pod": int(parts["gpus"] or 1),
    }
    try:
        return key(parts.groupdict()), Wanted.model_validate(fields)
    except pydantic.ValidationError as error:
        raise ValueError(_sentence(error)) from error


def key(names: Mapping[str, str]) -> Key:
    """Return the key of a workload; ValueError for a name that Kubernetes would not accept."""
    namespace, name = names["namespace"], names["name"]
    if not is_namespace(namespace):
        raise ValueError(f"namespace {namespace!r} is no Kubernetes namespace name")
    if not is_name(name):
        raise ValueError(f"name {name!r} is no Kubernetes object name")
    return Key(namespace, name)


def _sentence(error: pydantic.ValidationError) -> str:
    mistakes = (
        f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in error.errors()
    )
    return "; ".join(mistake.removeprefix(": ") for mistake in mistakes)
