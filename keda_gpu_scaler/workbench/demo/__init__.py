"""The whole loop on one machine: simulated GPUs, the real server, KEDA's and the HPA's rules.

This package plays KEDA and the HPA, and shows what happens. Nothing in `serve` imports it.
"""
