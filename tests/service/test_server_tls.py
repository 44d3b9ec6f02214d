"""TLS of the gRPC port, with real handshakes: which clients are accepted, and rotation."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import ed448

from keda_gpu_scaler import errors
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.transport.certificates import CertificateFiles
from tests.service.harness import QUIET, SIGNAL, Script, Served, first, reference, rest, serving
from tests.support.certificates import Pair, chain, expired, key_of, pem, self_signed, write

ADDRESS = "127.0.0.1"
SERVERS, CLIENTS, STRANGERS = trustme.CA(), trustme.CA(), trustme.CA()
OURS, RENEWED = SERVERS.issue_cert(ADDRESS), SERVERS.issue_cert(ADDRESS)
KEDA = CLIENTS.issue_cert("keda-operator")


@dataclass
class Mounted:
    """A directory with a server's certificate and its clients' CA, and what is told of them."""

    directory: Path
    told: list[float | str] = field(default_factory=list)

    def write(self, issued: trustme.LeafCert) -> Pair:
        """Write a certificate and its key."""
        return write(self.directory, issued)

    def follow(self) -> CertificateFiles:
        """Follow the files."""
        pair = Pair(self.directory / "tls.crt", self.directory / "tls.key")
        return CertificateFiles(*pair, self.ca, loaded=self.told.append, refused=self.told.append)

    @property
    def ca(self) -> Path:
        """The file with the CAs of clients."""
        return self.directory / "ca.crt"


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    there = Mounted(tmp_path)
    there.write(OURS)
    there.ca.write_bytes(CLIENTS.cert_pem.bytes())
    return there


@asynccontextmanager
async def connected(
    served: Served, leaf: trustme.LeafCert | None = KEDA, trusted: trustme.CA = SERVERS
) -> AsyncIterator[Any]:
    """Connect anew, with this certificate, trusting this CA."""
    own = (key_of(leaf), chain(leaf)) if leaf is not None else (None, None)
    secure = grpc.ssl_channel_credentials(trusted.cert_pem.bytes(), *own)
    alone = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"{ADDRESS}:{served.port}", secure, alone) as channel:
        yield externalscaler_pb2_grpc.ExternalScalerStub(channel)


async def code(stub: Any) -> grpc.StatusCode:
    """Ask for a metric spec, and return how that ended."""
    call = stub.GetMetricSpec(reference())
    ended: grpc.StatusCode = await call.code()
    return ended


async def shows(served: Served) -> bytes:
    """Return the certificate that a new connection is shown."""
    context = ssl.create_default_context(cadata=SERVERS.cert_pem.bytes().decode())
    KEDA.configure_cert(context)
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection(ADDRESS, served.port, ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return certificate


def der(issued: trustme.LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


@pytest.mark.parametrize(
    "leaf",
    [
        pytest.param(None, id="no certificate"),
        pytest.param(STRANGERS.issue_cert("keda-operator"), id="another CA's"),
        pytest.param(SERVERS.issue_cert("keda-operator"), id="of the CA of the servers"),
        pytest.param(expired(CLIENTS, "keda-operator"), id="expired"),
    ],
)
async def test_a_client_of_no_valid_certificate(
    mounted: Mounted, leaf: trustme.LeafCert | None
) -> None:
    script = Script(QUIET)
    async with (
        serving(script, certificate=mounted.follow()) as served,
        connected(served, leaf) as stub,
    ):
        assert await code(stub) is grpc.StatusCode.UNAVAILABLE
        assert served.calls.empty()
        async with connected(served) as other:
            assert await code(other) is grpc.StatusCode.OK


async def test_rotation_leaves_streams_alone_and_new_connections_see_it(mounted: Mounted) -> None:
    script = Script(SIGNAL)
    async with (
        serving(script, certificate=mounted.follow()) as served,
        connected(served) as stub,
    ):
        stream = stub.StreamIsActive(reference())
        assert (await first(stream)).result
        assert await shows(served) == der(OURS)
        mounted.write(RENEWED)
        assert await shows(served) == der(RENEWED)
        await script.asked_at_least(len(script.asked) + 2)
        assert await code(stub) is grpc.StatusCode.OK
        served.draining.set()
        assert not await rest(stream)


async def test_a_key_that_grpc_does_not_support_ends_the_start_and_is_not_shown_later(
    mounted: Mounted,
) -> None:
    key = ed448.Ed448PrivateKey.generate()
    followed = mounted.follow()
    async with serving(Script(QUIET), certificate=followed) as served:
        (mounted.directory / "tls.crt").write_bytes(self_signed(key))
        (mounted.directory / "tls.key").write_bytes(pem(key))
        for _ in range(2):
            assert await shows(served) == der(OURS)
    with pytest.raises(errors.SettingsError, match="which gRPC's library supports"):
        async with serving(Script(QUIET), certificate=followed):
            pass


async def test_the_cas_of_clients_rotate_as_well(mounted: Mounted) -> None:
    stranger = STRANGERS.issue_cert("keda-operator")
    async with (
        serving(Script(QUIET), certificate=mounted.follow()) as served,
        connected(served) as before,
    ):
        assert await code(before) is grpc.StatusCode.OK
        mounted.ca.write_bytes(STRANGERS.cert_pem.bytes())
        async with connected(served, stranger) as stub:
            assert await code(stub) is grpc.StatusCode.OK
        async with connected(served) as stub:
            assert await code(stub) is grpc.StatusCode.UNAVAILABLE
        assert await code(before) is grpc.StatusCode.OK
