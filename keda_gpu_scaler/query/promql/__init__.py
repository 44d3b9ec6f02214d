"""PromQL that users write: parsed, checked, confined to a namespace, and written anew.

Pure. Nothing here sends anything. The text that is sent is written from the parsed tree, so that a
server cannot read it in another way.

    reading     text → tree, or what is wrong with it and where
    tree        what a tree consists of: its nodes, selectors and the time they reach back
    writing     tree → text, with more matchers for each selector
    matchers    label matchers that every selector gets
    policy      what the operator allows, and which matchers keep a selector to one namespace
"""

from keda_gpu_scaler.query.promql.policy import Policy, number, own

__all__ = ["Policy", "number", "own"]
