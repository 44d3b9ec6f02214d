"""The gRPC service KEDA talks to: proto in, proto out, errors → status codes, nothing else.

A call goes through interceptor → servicer → messages → the evaluator → messages.
"""

from keda_gpu_scaler.service.server import GrpcServer

__all__ = ["GrpcServer"]
