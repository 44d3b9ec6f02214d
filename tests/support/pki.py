"""Two CAs that know nothing of each other, and files of what they issue."""

from pathlib import Path

import trustme

from tests.support import certificates
from tests.support.certificates import Pair


class Pki:
    """Two CAs, the first of them trusted."""

    def __init__(self, directory: Path) -> None:
        self.ca, self.other = trustme.CA(), trustme.CA()
        self._directory = directory

    @property
    def ca_file(self) -> Path:
        return self.file("ca.crt", self.ca.cert_pem.bytes())

    def file(self, name: str, content: bytes = b"") -> Path:
        path = self._directory / name
        path.write_bytes(content)
        return path

    def pair(self, leaf: trustme.LeafCert) -> Pair:
        """Write a certificate and its key, over what was there."""
        return certificates.write(self._directory, leaf)
