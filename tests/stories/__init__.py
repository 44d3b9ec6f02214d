"""Walks through the public doors: loops of KEDA and the HPA, and what the scaler promises."""
