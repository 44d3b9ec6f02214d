"""A Prometheus, or another server with its HTTP API, as a source."""
