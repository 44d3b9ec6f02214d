"""Triggers that are observed and have no power."""
