"""Closed loops: the real scaler, and a made-up world that its answers change."""
