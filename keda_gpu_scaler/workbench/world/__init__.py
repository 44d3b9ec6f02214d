"""Made-up workloads: pods with a life, work that they share, and what is shown of their GPUs.

`loop.py` has the work, the pods and the rules that scale them; `cluster.py` nodes and pods that
requests change, and `exposition.py` their page, like a dcgm-exporter's.

It is for trying the scaler without a GPU and for the tests. The pods may be those of a real
cluster; their GPUs and their load are simulated even then. Nothing in `serve` imports it.
"""
