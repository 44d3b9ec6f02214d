"""KEDA's and the HPA's rules: for recommendations, simulations, and what holds replicas. Pure."""
