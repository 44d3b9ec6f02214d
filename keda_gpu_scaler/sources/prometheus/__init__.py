"""A Prometheus, or what speaks its API, as a source."""
