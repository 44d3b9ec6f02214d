"""What a failed call means, in a sentence, with gRPC's own words behind it."""

import grpc

MEANINGS = {
    "errors resolving": "the name cannot be resolved",
    "resolution failed": "the name cannot be resolved",
    "Connection refused": "nothing listens there",
    "WRONG_VERSION_NUMBER": "the server speaks no TLS: leave --ca-file out",
    "unable to get local issuer certificate": "the server's certificate is of no CA in --ca-file",
    "self-signed certificate": "the server's certificate is of no CA in --ca-file",
    "certificate has expired": "the server's certificate has expired",
    "Hostname Verification Check failed": (
        "the server's certificate is for another name: --server-name says which to expect"
    ),
    "Failed parsing HTTP/2": "the server speaks no gRPC: is that its HTTP port?",
}
"""By what gRPC says of a connection that could not be made."""
_CLOSED = ("Socket closed", "Connection reset", "Broken pipe")
CLOSED_TLS = (
    "the server closed the connection: where it asks for client certificates, --cert-file and "
    "--key-file have to be of a CA that it trusts"
)
CLOSED_PLAINTEXT = "the server closed the connection: where it speaks TLS, give --ca-file"

TOO_LATE = "no answer in time: --timeout says how long to wait"


def of(error: grpc.RpcError, *, tls: bool) -> str:
    """Return the sentence for a call that failed.

    Args:
        error: what the call raised.
        tls: whether TLS was spoken.
    """
    code, details = error.code(), error.details() or "no reason given"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TOO_LATE
    said = f"{code.name}: {details}"
    meaning = _meaning(details, tls=tls) if code is grpc.StatusCode.UNAVAILABLE else None
    return said if meaning is None else f"{meaning} ({said})"


def _meaning(details: str, *, tls: bool) -> str | None:
    for words, meaning in MEANINGS.items():
        if words in details:
            return meaning
    if any(words in details for words in _CLOSED):
        return CLOSED_TLS if tls else CLOSED_PLAINTEXT
    return None
