"""Tests of the gRPC service, over real channels to a real server."""
