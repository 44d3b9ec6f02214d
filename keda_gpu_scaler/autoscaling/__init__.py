"""KEDA's and the HPA's rules, for simulations: demo, tests, benchmarks. Pure."""
