"""HTTP, over real sockets."""
