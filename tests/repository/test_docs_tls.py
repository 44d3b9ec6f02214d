"""The page on TLS: its files are taken, its objects name what exists, its command is answered."""

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from keda_gpu_scaler import settings, trigger
from keda_gpu_scaler.service.certificates import CertificateFiles
from keda_gpu_scaler.telemetry import facts
from tests.repository.test_docs import ROOT
from tests.service.harness import QUIET, Script, serving
from tests.support import programs
from tests.support.certificates import write

PAGE = (ROOT / "docs" / "tls.md").read_text()
NAME = "keda-gpu-scaler.keda.svc"
MOUNTED = "/etc/keda-gpu-scaler/tls"
(DEPLOYMENT, AUTHENTICATION, SCALED_OBJECT) = (
    document
    for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for document in yaml.safe_load_all(text)
)


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A directory as the page mounts it, with a certificate for the name on the page."""
    authority = trustme.CA()
    write(tmp_path, authority.issue_cert(NAME))
    (tmp_path / "ca.crt").write_bytes(authority.cert_pem.bytes())
    return tmp_path


def test_the_files_of_the_deployment_are_taken(mounted: Path) -> None:
    pod: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = container["volumeMounts"]
    assert volume["mountPath"] == MOUNTED
    assert [each["name"] for each in pod["volumes"]] == [volume["name"]]
    given = {
        each["name"]: each["value"].replace(MOUNTED, str(mounted)) for each in container["env"]
    }
    loaded = settings.load(given | {"KEDA_GPU_SCALER_PROMETHEUS_URL": "http://prometheus:9090"})
    files = loaded.grpc_cert_file, loaded.grpc_key_file, loaded.grpc_client_ca_file
    assert files == tuple(mounted / name for name in ("tls.crt", "tls.key", "ca.crt"))


def test_the_authentication_has_every_parameter_of_kedas_and_the_trigger_names_it() -> None:
    told = {each["parameter"] for each in AUTHENTICATION["spec"]["secretTargetRef"]}
    assert told == {"caCert", "tlsClientCert", "tlsClientKey"}
    assert told < trigger.KEDA_KEYS
    (used,) = SCALED_OBJECT["spec"]["triggers"]
    assert used["authenticationRef"]["name"] == AUTHENTICATION["metadata"]["name"]
    assert NAME in used["metadata"]["scalerAddress"]


@pytest.mark.needs("grpcurl")
async def test_the_command_of_the_page_is_answered(mounted: Path) -> None:
    pair = mounted / "tls.crt", mounted / "tls.key"
    certificate = CertificateFiles("grpc", *pair, mounted / "ca.crt", facts.ignore)
    (command,) = re.findall(r"^grpcurl (.*)$", PAGE, re.MULTILINE)
    async with serving(Script(QUIET), certificate=certificate) as served:
        assert f"`-authority {NAME}`" in PAGE
        here = command.replace(f"{NAME}:6000", f"-authority {NAME} localhost:{served.port}")
        process = await asyncio.create_subprocess_exec(
            *(programs.path("grpcurl"), *shlex.split(here)),
            cwd=mounted,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
    assert process.returncode == 0, output
    assert b"SERVING" in output
