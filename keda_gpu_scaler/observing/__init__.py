"""Advice without power: decides triggers of files, which KEDA does not ask about.

    folder     the files, read again when they change
    manifests  texts → the triggers in them that are for this scaler, and what is refused
    observing  evaluates them at the source's step
    together   these triggers beside those that KEDA asks about, for people

A trigger here never changes what KEDA is answered: it has its own memory and is told to no other
replica. It shares snapshots with the others, and nothing else.
"""

from keda_gpu_scaler.observing.folder import Folder
from keda_gpu_scaler.observing.observing import Observing
from keda_gpu_scaler.observing.together import Together

__all__ = ["Folder", "Observing", "Together"]
