"""A dcgm-exporter look-alike: GPUs, pods and their load, made up, behind the exporter's own page.

It exists for trying the scaler without a GPU and for the tests. The pods may be those of a real
cluster; their GPUs and their load are made up even then. Nothing in `serve` imports it.
"""
