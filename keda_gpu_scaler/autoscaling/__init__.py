"""KEDA's and the HPA's rules: for simulations, and for what holds the replicas. Pure."""
