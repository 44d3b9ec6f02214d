"""A KEDA external scaler that scales GPU workloads on the load of exactly their own pods."""

__version__ = "0.1.0"
