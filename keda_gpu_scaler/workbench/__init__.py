"""What people run beside the scaler: the scaler itself imports nothing of it."""
