"""Triggers of files, which KEDA does not ask about."""
