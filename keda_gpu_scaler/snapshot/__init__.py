"""Samples from a source + evidence from the cluster → every pod, its samples, its status. Pure."""
