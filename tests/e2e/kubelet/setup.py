"""What a pod's containers are given before they start: files, an environment, a command."""

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightkube
from lightkube import ApiError
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ServiceAccount, ServiceAccountToken

from tests.e2e.kubelet import addresses, environment, files
from tests.e2e.kubelet.container import Command
from tests.e2e.kubelet.files import Manifest, NotReadyYetError
from tests.e2e.kubelet.place import Place
from tests.e2e.programs import ROOT

IMAGE = "keda-gpu-scaler"
_BIN = str(Path(sys.executable).parent)
_TOKEN_SECONDS = 3600
_LISTENS = {
    "grpc": ("KEDA_GPU_SCALER_GRPC_ADDRESS", 6000),
    "http": ("KEDA_GPU_SCALER_HTTP_ADDRESS", 8080),
}
_NOT_PROXIED = "127.0.0.1,localhost"


@dataclass(frozen=True, slots=True)
class House:
    """What all pods have in common."""

    client: lightkube.AsyncClient
    kubeconfig: Path
    directory: Path
    proxy: str


@dataclass(slots=True)
class Setup:
    """One pod's files and commands."""

    house: House
    pod: Manifest
    """With its own address in its status."""
    host: str = field(init=False)
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        """Give it a directory."""
        self.host = addresses.loopback(self.pod["status"]["podIP"])
        self.home = self.house.directory / "pods" / self.pod["metadata"]["uid"]
        self.home.mkdir(parents=True, exist_ok=True)

    async def write_files(self) -> None:
        """Bring every volume up to date.

        Raises:
            NotReadyYetError: something that is not optional does not exist.
        """
        namespace = self.pod["metadata"]["namespace"]
        for volume in self.pod["spec"].get("volumes", []):
            found = await files.contents(self.house.client, namespace, volume)
            if "emptyDir" not in volume:
                found = {path: self._place().content_here(text) for path, text in found.items()}
            files.project(self.home / "volumes" / volume["name"], found)

    async def command(self, container: Manifest) -> Command | None:
        """Return what a container runs here; None for an image that is not ours.

        Raises:
            NotReadyYetError: something that is not optional does not exist.
        """
        if not is_ours(container["image"]):
            return None
        place = self._place(container)
        variables = await environment.of_container(self.house.client, self.pod, container)
        own = {name: place.here(text) for name, text in variables.items()}
        return Command(
            [place.here(environment.expand(word, variables)) for word in _words(container)],
            {**self._surroundings(), **own, **self._listens(container), **await self._access()},
            self.host,
            self.home,
        )

    def _place(self, *containers: Manifest) -> Place:
        """Return where these containers, or all of the pod, have their files."""
        mounts = {
            mount["mountPath"]: self.home / "volumes" / mount["name"] / mount.get("subPath", "")
            for container in containers or self.pod["spec"]["containers"]
            for mount in container.get("volumeMounts", [])
        }
        return Place(self.host, mounts)

    def _surroundings(self) -> dict[str, str]:
        names = [f"{scheme}_proxy" for scheme in ("http", "https")]
        proxies = dict.fromkeys(names, self.house.proxy) | {"no_proxy": _NOT_PROXIED}
        shouted = {name.upper(): text for name, text in proxies.items()}
        here = {"PATH": _BIN, "HOME": str(self.home), "HOSTNAME": self.pod["metadata"]["name"]}
        return {**here, **proxies, **shouted}

    def _listens(self, container: Manifest) -> dict[str, str]:
        """Return the settings that keep the scaler on the pod's own address, at its own ports."""
        ports = {each.get("name"): each["containerPort"] for each in container.get("ports", [])}
        return {
            variable: f"{self.host}:{ports.get(name, usual)}"
            for name, (variable, usual) in _LISTENS.items()
        }

    async def _access(self) -> dict[str, str]:
        """Return how the pod finds the API server, if it has a token of its ServiceAccount."""
        account = await self._account()
        if not _has_token(self.pod["spec"], account):
            return {}
        configuration = json.loads(self.house.kubeconfig.read_text())
        configuration["users"][0]["user"] = {"token": await self._token()}
        path = self.home / "kubeconfig"
        path.write_text(json.dumps(configuration))
        return {"KUBECONFIG": str(path)}

    async def _account(self) -> Manifest | None:
        name = self.pod["spec"].get("serviceAccountName", "default")
        namespace = self.pod["metadata"]["namespace"]
        try:
            found = await self.house.client.get(ServiceAccount, name, namespace=namespace)
        except ApiError:
            return None
        return dict(found.to_dict())

    async def _token(self) -> str:
        spec = TokenRequestSpec(audiences=[], expirationSeconds=_TOKEN_SECONDS)
        request = ServiceAccountToken(metadata=ObjectMeta(), spec=spec)
        name = self.pod["spec"].get("serviceAccountName", "default")
        namespace = self.pod["metadata"]["namespace"]
        issued = await self.house.client.create(request, name, namespace=namespace)
        assert issued.status is not None
        assert issued.status.token is not None
        return issued.status.token


def _of_image(instruction: str) -> list[str]:
    """Return what the image runs when its pod says nothing, out of the Dockerfile."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    [said] = [line for line in lines if line.startswith(instruction)]
    return list(json.loads(said.removeprefix(instruction)))


def is_ours(image: str) -> bool:
    """Tell whether an image is the product's, whatever registry it comes from."""
    return re.split(r"[:@]", image.rpartition("/")[2])[0] == IMAGE


def _words(container: Manifest) -> Sequence[str]:
    """Return the command line; what the image lacks cannot be run.

    Raises:
        NotReadyYetError: the program is not in the image.
    """
    program, *rest = container.get("command") or _of_image("ENTRYPOINT")
    arguments = container.get("args") or ([] if container.get("command") else _of_image("CMD"))
    found = shutil.which(program, path=_BIN)
    if found is None:
        message = f'exec: "{program}": executable file not found in $PATH'
        raise NotReadyYetError("RunContainerError", message)
    return [found, *rest, *arguments]


def _has_token(spec: Mapping[str, Any], account: Manifest | None) -> bool:
    """Tell whether a pod is given a token: its own field, else its ServiceAccount's, else yes."""
    if account is None:
        return False
    own = spec.get("automountServiceAccountToken")
    return bool(account.get("automountServiceAccountToken", True) if own is None else own)
