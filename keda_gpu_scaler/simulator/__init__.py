"""A dcgm-exporter look-alike: GPUs, pods and their load, made up, behind the exporter's own page.

It exists for trying the scaler without a GPU and for the tests; nothing in `serve` imports it.
"""
