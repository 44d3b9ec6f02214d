"""KEDA's rules and the HPA's, for those who play them: demo, tests, benchmarks. Pure."""
