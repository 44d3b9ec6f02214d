"""InfluxQL: the scaler's own questions, and those that users write.

Pure. Nothing here sends anything.

    text       literals: the one function that escapes what goes between quotes
    schema     which measurement, field and tags of a database say what
    questions  the texts that a source asks: points, the last hour, GPUs
    selection  a user's own question: one that only reads, or what is wrong with it
"""

from keda_gpu_scaler.influxql.schema import METRIC, Schema
from keda_gpu_scaler.influxql.selection import selection
from keda_gpu_scaler.influxql.text import is_speakable

__all__ = ["METRIC", "Schema", "is_speakable", "selection"]
