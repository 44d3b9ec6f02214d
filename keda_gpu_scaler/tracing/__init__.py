"""Traces of calls and of queries to sources, sent by OTLP; made from facts.

    spans   fact → span: what began, what came of it, under which parent
    export  where spans go, and how they are sent before the process ends

Nothing here decides, and nothing waits for a collector: spans are handed to a thread, which drops
what it cannot send. `app` imports this only where the settings ask for traces, because it loads the
libraries of the extra `otel`.
"""

from keda_gpu_scaler.tracing.export import Export
from keda_gpu_scaler.tracing.spans import SpanObserver

__all__ = ["Export", "SpanObserver"]
