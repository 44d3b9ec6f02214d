"""Tests of what a cluster says of its pods, over real sockets and on a real Prometheus."""
