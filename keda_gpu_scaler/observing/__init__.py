"""Decides the triggers of files, which KEDA does not ask about.

    manifests  texts → the triggers in them that are for this scaler, and what is refused
    observing  reads the files of a folder, and asks about their triggers as KEDA would

Nothing of it reaches KEDA: the process that observes has no port that KEDA could call.
"""

from keda_gpu_scaler.observing.observing import Observing

__all__ = ["Observing"]
