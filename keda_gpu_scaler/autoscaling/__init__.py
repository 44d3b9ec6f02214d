"""KEDA's and the HPA's rules, for recommendations and simulations. Pure."""
