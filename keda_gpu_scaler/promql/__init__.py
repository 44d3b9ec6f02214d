"""PromQL that users write: parsed, checked, restricted to a namespace, and generated again.

Pure. Nothing here sends anything. The text that is sent is written from the parsed tree, so that a
server cannot read it in another way. `policy` is the door; the others say themselves what they do.
"""

from keda_gpu_scaler.promql.placeholders import Values
from keda_gpu_scaler.promql.policy import Policy, number, own

__all__ = ["Policy", "Values", "number", "own"]
