"""What the product promises, shown from end to end: a real Prometheus, a real gRPC channel."""
