"""Certificates of two CAs that know nothing of each other, as files."""

from pathlib import Path

import trustme


class Pki:
    """Two CAs, one of them trusted, and files of what they issue."""

    def __init__(self, directory: Path) -> None:
        """Keep the files in this directory."""
        self.ca, self.other = trustme.CA(), trustme.CA()
        self._directory = directory

    @property
    def ca_file(self) -> Path:
        """The first CA's certificate."""
        return self.file("ca.crt", self.ca.cert_pem)

    def file(self, name: str, *blobs: trustme.Blob) -> Path:
        """Write a file of these PEM blocks, or write it anew."""
        path = self._directory / name
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return path

    def pair(self, leaf: trustme.LeafCert, name: str = "tls") -> tuple[Path, Path]:
        """Write a certificate and its key, or write them anew; return the files."""
        chain = self.file(f"{name}.crt", *leaf.cert_chain_pems)
        return chain, self.file(f"{name}.key", leaf.private_key_pem)
