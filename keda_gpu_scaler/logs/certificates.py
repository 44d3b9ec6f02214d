"""Which facts about the certificates that this process shows become lines of the log."""

from datetime import UTC, datetime

import structlog
from structlog.typing import FilteringBoundLogger

from keda_gpu_scaler import facts

CertificateFact = facts.CertificateLoaded | facts.CertificateRefused | facts.CertificateLapsed


class CertificateLog:
    """Writes a line where a certificate is loaded, cannot be used, or is out of its dates."""

    def __init__(self) -> None:
        # Bound, because a logger that is not yet builds itself anew for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()

    def __call__(self, fact: CertificateFact) -> None:
        """Write the line."""
        match fact:
            case facts.CertificateLoaded(server, expires_at):
                expires = datetime.fromtimestamp(expires_at, UTC).isoformat()
                self._logger.info("certificate.loaded", server=server, expires=expires)
            case facts.CertificateRefused(server, reason):
                self._logger.warning("certificate.refused", server=server, reason=reason)
            case _:
                self._logger.error("certificate.lapsed", server=fact.server, reason=fact.reason)
