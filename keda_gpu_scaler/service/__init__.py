"""The gRPC service KEDA talks to: proto in, proto out, errors → status codes, nothing else.

    server        ports, TLS, options, health, reflection, start and stop
    interceptor   around every call: bytes → request, errors → status codes, one fact
    requests      what a request asks for: which ScaledObject, which spec
    servicer      the five RPCs
    streams       how long a stream lives, and when `true` is pushed
    responses     spec and decision → proto

Nothing here measures or decides: that is the evaluator's.
"""

from keda_gpu_scaler.service.server import GrpcServer

__all__ = ["GrpcServer"]
