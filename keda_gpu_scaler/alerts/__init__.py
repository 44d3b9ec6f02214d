"""Which alerts fire for which ScaledObject, as far as this process was told.

Pure: no I/O, and the clock is an argument.

    entry   what is known of one alert, and how it merges with what another replica knows
    book    all of them: the alerts that fire now, and who wants to hear of a change
    wire    entries as replicas of the scaler tell them to each other

An alert wakes a workload and keeps it awake. It never says how many replicas there should be, and
its end takes no replica away that has work.
"""

from keda_gpu_scaler.alerts.store import LIMIT, AlertRecord, Alerts, AlertUpdate

__all__ = ["LIMIT", "AlertRecord", "AlertUpdate", "Alerts"]
