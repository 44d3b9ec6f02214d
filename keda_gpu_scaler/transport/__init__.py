"""HTTP client and server, TLS certificates, host names: with bounds, independent of the content."""
