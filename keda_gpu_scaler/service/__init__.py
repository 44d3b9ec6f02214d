"""The gRPC service KEDA talks to: proto in, proto out, errors → status codes, nothing else.

    server    ports, options, health, reflection, start and stop
    credentials  TLS: which certificate each handshake shows
    calls     around every call: bytes → request, errors → status, one fact
    health    the standard health service: serving, or draining
    requests  what a request asks for: which ScaledObject, which spec
    servicer  the five RPCs
    streams   how long a stream lives, and when `true` is pushed
    answers   spec and decision → proto
    status    the one ladder from errors to status codes

Nothing in here measures or decides: that is behind the `Evaluations` port.
"""

from keda_gpu_scaler.service.server import GrpcServer, create_server
from keda_gpu_scaler.service.servicer import Evaluations

__all__ = ["Evaluations", "GrpcServer", "create_server"]
