"""Certificates of a scenario: of scalers as files, of KEDA as a Secret and what refers to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import trustme

from tests.e2e.manifests import Manifest
from tests.support import certificates

NAMES = ("127.0.0.1", "keda-gpu-scaler")
"""What KEDA checks a scaler's certificate against: the host of `scalerAddress`, one of these."""
CLIENT = "keda-operator"


class Authorities(NamedTuple):
    """The authority for scalers, and the one for their clients."""

    scalers: trustme.CA
    clients: trustme.CA

    @property
    def keda(self) -> dict[str, str]:
        """KEDA's parameters if all is well, with a certificate of its own."""
        return self.parameters(self.clients.issue_cert(CLIENT))

    @classmethod
    def create(cls) -> "Authorities":
        """Make both."""
        return cls(trustme.CA(), trustme.CA())

    def settings(
        self, directory: Path, leaf: trustme.LeafCert | None = None, *, mutual: bool = True
    ) -> dict[str, str]:
        """Write a scaler's files, as a Secret's volume has them, and return what names them."""
        directory.mkdir(exist_ok=True)
        pair = certificates.write(directory, leaf or self.scalers.issue_cert(*NAMES))
        authority = directory / "ca.crt"
        authority.write_bytes(self.clients.cert_pem.bytes())
        files = {"GRPC_CERT_FILE": str(pair.cert), "GRPC_KEY_FILE": str(pair.key)}
        return files | ({"GRPC_CLIENT_CA_FILE": str(authority)} if mutual else {})

    def parameters(
        self, leaf: trustme.LeafCert | None = None, trusted: trustme.CA | None = None
    ) -> dict[str, str]:
        """Return KEDA's parameters, with a client's certificate or without."""
        told = {"caCert": (trusted or self.scalers).cert_pem.bytes().decode()}
        if leaf is None:
            return told
        pair = {
            "tlsClientCert": certificates.chain(leaf).decode(),
            "tlsClientKey": certificates.key_of(leaf).decode(),
        }
        return told | pair


def authentication(namespace: str, name: str, parameters: Mapping[str, str]) -> list[Manifest]:
    """Return a Secret, and a TriggerAuthentication of the same name that reads all of it."""
    metadata = {"namespace": namespace, "name": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "stringData": dict(parameters),
        },
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "TriggerAuthentication",
            "metadata": metadata,
            "spec": {
                "secretTargetRef": [
                    {"parameter": each, "name": name, "key": each} for each in parameters
                ]
            },
        },
    ]
