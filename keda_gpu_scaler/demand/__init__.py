"""Demands that have a name: what a model server or router says of its requests."""
