"""Facts, stated once, and what subscribes to them: log lines, metrics, traces."""
