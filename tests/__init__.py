"""Tests of keda_gpu_scaler."""
