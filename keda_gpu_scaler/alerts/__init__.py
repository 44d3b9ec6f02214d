"""Which alerts fire for which ScaledObject, as far as this process was told.

An alert wakes a workload and keeps it awake. It never says how many replicas there should be, and
its end removes no replica that has work.
"""

from keda_gpu_scaler.alerts.store import LIMIT, AlertRecord, Alerts, AlertUpdate

__all__ = ["LIMIT", "AlertRecord", "AlertUpdate", "Alerts"]
