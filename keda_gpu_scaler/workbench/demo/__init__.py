"""Scenes of one workload, under the scaler and under recipes of others, on one machine."""
