"""The cluster's certificates: one authority for servers, one for the front proxy.

KEDA's operator and its metrics adapter prove themselves to each other with one certificate.
"""

import base64
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in one directory, all made in `write`."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The certificate every client trusts."""
        return self.directory / "ca.crt"

    @property
    def certificate(self) -> Path:
        """Of every server on loopback, and of KEDA's parts as clients of each other."""
        return self.directory / "tls.crt"

    @property
    def key(self) -> Path:
        """The key of that certificate; it signs service account tokens too."""
        return self.directory / "tls.key"

    @property
    def proxy_authority(self) -> Path:
        """The authority by which aggregated API servers trust the API server."""
        return self.directory / "proxy-ca.crt"

    @property
    def proxy_certificate(self) -> Path:
        """The certificate that the API server shows to them."""
        return self.directory / "proxy.crt"

    @property
    def proxy_key(self) -> Path:
        """The key of the front proxy's certificate."""
        return self.directory / "proxy.key"

    def authority_base64(self) -> str:
        """Return the authority as Kubernetes objects carry it."""
        return base64.b64encode(self.authority.read_bytes()).decode()

    def write(self) -> None:
        """Make all files, with the names KEDA expects in its `--cert-dir`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        servers, proxies = trustme.CA(), trustme.CA()
        leaf = servers.issue_cert("127.0.0.1", "localhost")
        proxy = proxies.issue_cert("front-proxy", common_name="front-proxy")
        servers.cert_pem.write_to_path(self.authority)
        proxies.cert_pem.write_to_path(self.proxy_authority)
        _write(leaf, self.certificate, self.key)
        _write(proxy, self.proxy_certificate, self.proxy_key)


def _write(leaf: trustme.LeafCert, certificate: Path, key: Path) -> None:
    leaf.cert_chain_pems[0].write_to_path(certificate)
    leaf.private_key_pem.write_to_path(key)
