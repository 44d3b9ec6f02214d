"""PromQL that users write: read, judged, confined to a namespace, and written anew.

Pure. Nothing here sends anything. A user's text is parsed; what is sent is what was understood,
written from the parsed tree, so that no server can understand it in another way.

    text        literals: the one function that quotes a string
    reading     text → tree, or what is wrong with it and where
    place       where a text stops to be PromQL, and what could have stood there
    tree        what a tree consists of: its nodes, selectors and the time they reach back
    writing     tree → text, with more matchers for each selector
    confinement which matchers keep a selector to one namespace
    policy      what the operator allows, and what becomes of a query under it
"""

from keda_gpu_scaler.query.promql.policy import Policy, number, own
from keda_gpu_scaler.query.promql.writing import quoted

__all__ = ["Policy", "number", "own", "quoted"]
