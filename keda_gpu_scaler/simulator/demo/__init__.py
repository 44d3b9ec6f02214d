"""The whole loop on one machine: simulated GPUs, the real server, KEDA's and the HPA's rules.

The server and the simulator are processes of their own, as they are in a cluster; this package
plays KEDA and the HPA in front of them and shows what happens. Nothing in `serve` imports it.
"""
