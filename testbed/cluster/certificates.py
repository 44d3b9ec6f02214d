"""The cluster's certificates: one authority for servers, one for the front proxy.

KEDA's operator and its metrics adapter prove themselves to each other with one certificate.
"""

import base64
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in one directory."""

    directory: Path
    """KEDA's `--cert-dir`: the names are those that it expects."""
    authority: Path
    """The certificate every client trusts."""
    certificate: Path
    """Of every server on loopback, and of KEDA's parts as clients of each other."""
    key: Path
    """The key of that certificate; it signs service account tokens too."""
    proxy_authority: Path
    """The authority by which aggregated API servers trust the API server."""
    proxy_certificate: Path
    """The certificate that the API server shows to them."""
    proxy_key: Path

    @classmethod
    def write(cls, directory: Path) -> "Certificates":
        """Make all of them."""
        directory.mkdir()
        names = "ca.crt", "tls.crt", "tls.key", "proxy-ca.crt", "proxy.crt", "proxy.key"
        made = cls(directory, *(directory / name for name in names))
        servers, proxies = trustme.CA(), trustme.CA()
        servers.cert_pem.write_to_path(made.authority)
        proxies.cert_pem.write_to_path(made.proxy_authority)
        leaf = servers.issue_cert("127.0.0.1", "localhost")
        proxy = proxies.issue_cert("front-proxy", common_name="front-proxy")
        for pair, certificate, key in (
            (leaf, made.certificate, made.key),
            (proxy, made.proxy_certificate, made.proxy_key),
        ):
            pair.cert_chain_pems[0].write_to_path(certificate)
            pair.private_key_pem.write_to_path(key)
        return made

    def authority_base64(self) -> str:
        """Return the authority as Kubernetes objects carry it."""
        return base64.b64encode(self.authority.read_bytes()).decode()
