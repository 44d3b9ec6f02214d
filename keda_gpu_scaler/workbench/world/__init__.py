"""A dcgm-exporter look-alike: it shows simulated GPUs, pods and load on a page like the exporter's.

It is for trying the scaler without a GPU and for the tests. The pods may be those of a real
cluster; their GPUs and their load are simulated even then. Nothing in `serve` imports it.
"""
