"""HTTP client and server, TLS certificates, names of hosts: bounded, and of no meaning."""
