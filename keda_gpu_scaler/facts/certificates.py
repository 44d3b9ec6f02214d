"""The certificates that this process shows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CertificateLoaded:
    """A server shows this certificate from now on; stated once for each."""

    server: str
    """grpc or http."""
    expires_at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class CertificateRefused:
    """New files hold no certificate that can be used; the one before goes on. Stated once."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class CertificateLapsed:
    """A certificate is shown although its dates make clients refuse it; stated once for each."""

    server: str
    reason: str
