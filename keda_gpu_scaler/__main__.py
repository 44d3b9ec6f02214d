"""`python -m keda_gpu_scaler` is `keda-gpu-scaler`."""

from keda_gpu_scaler.cli import main

main()
