"""Evaluates triggers: snapshots that they share, a decision for each, and the ports it needs."""
