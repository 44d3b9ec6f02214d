"""The certificates that this process shows: read, judged, and read again whenever one is needed.

    pem          files in PEM → a certificate that can be served, or the reason why not
    certificate  such a certificate, and the TLS context of an HTTP server that shows it
    trial        whether the library that is to show it takes it
    files        the files of one server, followed: what they hold now, or last held in order

Certificates rotate. Something writes new files long before the old ones expire, often one after the
other, so that for a moment the key is not that of the certificate. Only `pem` knows X.509.
"""

from keda_gpu_scaler.certificates.certificate import Certificate
from keda_gpu_scaler.certificates.files import CertificateFiles
from keda_gpu_scaler.certificates.pem import PemFile, chain, judge, private_key, read
from keda_gpu_scaler.certificates.trial import Server, require_served

__all__ = [
    "Certificate",
    "CertificateFiles",
    "PemFile",
    "Server",
    "chain",
    "judge",
    "private_key",
    "read",
    "require_served",
]
