"""The use case: snapshots that triggers share, a decision for each, and the ports it needs."""
