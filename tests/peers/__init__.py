"""Replicas that tell each other of alerts."""
