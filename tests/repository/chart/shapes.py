"""The parts of a rendered release: objects by kind, the scaler's pod, its settings."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
import typer
from typer.core import TyperCommand, TyperGroup

from keda_gpu_scaler import cli
from testbed import charts
from testbed.charts import Object

ETC = "/etc/"
_TOKEN = "only-for-tests"


@dataclass(frozen=True)
class Release:
    """The objects of one case."""

    objects: tuple[Object, ...]

    def of(self, kind: str, *, costs: bool = False) -> list[Object]:
        """Return the objects of a kind without those of `deletion-cost`, or only these."""
        of_kind = (one for one in self.objects if one["kind"] == kind)
        return [one for one in of_kind if ("-costs" in one["metadata"]["name"]) is costs]

    def the(self, kind: str, suffix: str = "") -> Object:
        """Return the only object of a kind with this ending of its name."""
        (found,) = (one for one in self.of(kind) if one["metadata"]["name"].endswith(suffix))
        return found

    @property
    def pod(self) -> Object:
        template: Object = self.the("Deployment")["spec"]["template"]
        return template

    @property
    def container(self) -> Object:
        found: Object
        found, *_ = self.pod["spec"]["containers"]
        return found

    @property
    def variables(self) -> dict[str, str]:
        """The container's environment; what comes from a Secret is a token for tests."""
        return {one["name"]: str(one.get("value", _TOKEN)) for one in self.container["env"]}


@functools.cache
def release(case: str) -> Release:
    """Return what a case renders; all callers share it."""
    return Release(tuple(charts.objects(charts.rendered(case))))


def command(name: str) -> TyperCommand:
    """Return one of the program's commands, with its options."""
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    _, found, _ = group.resolve_command(typer.Context(group), [name])
    assert isinstance(found, TyperCommand)
    return found


def mounted(found: Release, directory: Path) -> dict[str, str]:
    """Write what the container has below /etc into a directory; return its environment there."""
    volumes = {one["name"]: one for one in found.pod["spec"]["volumes"]}
    for mount in found.container["volumeMounts"]:
        _fill(
            volumes[mount["name"]],
            found,
            directory / mount["mountPath"].removeprefix(ETC),
            directory,
        )
    variables: dict[str, str] = there(found.variables, directory)
    return variables


def there(value: Any, directory: Path) -> Any:
    """Return the same with every path below /etc in a directory instead."""
    if isinstance(value, Mapping):
        return {name: there(inner, directory) for name, inner in value.items()}
    return value.replace(ETC, f"{directory}/") if isinstance(value, str) else value


def _fill(volume: Object, found: Release, folder: Path, directory: Path) -> None:
    folder.mkdir(parents=True)
    content = _config(volume, found) if "configMap" in volume else _secret()
    for name, text in content.items():
        (folder / name).write_text(there(text, directory))


def _config(volume: Object, found: Release) -> dict[str, str]:
    name = volume["configMap"]["name"]
    data: list[dict[str, Any]] = [
        one["data"] for one in found.of("ConfigMap") if one["metadata"]["name"] == name
    ]
    return dict(*data)


@functools.cache
def _secret() -> dict[str, str]:
    """Return what any Secret or projected volume holds: a certificate, its key and CA, a token."""
    authority = trustme.CA()
    pair = authority.issue_cert("keda-gpu-scaler.keda.svc")
    return {
        "tls.crt": b"".join(one.bytes() for one in pair.cert_chain_pems).decode(),
        "tls.key": pair.private_key_pem.bytes().decode(),
        "ca.crt": authority.cert_pem.bytes().decode(),
        "service-ca.crt": authority.cert_pem.bytes().decode(),
        "token": _TOKEN,
        "bearer": _TOKEN,
    }
