"""Traces: what becomes of facts, and what a real collector receives."""
