"""Facts, each stated once, and their subscribers: log lines, metrics, traces."""
