"""PromQL that users write: parsed, checked, restricted to a namespace, and generated again.

Pure. Nothing here sends anything. The text that is sent is written from the parsed tree, so that a
server cannot read it in another way.

    tokens      a text's tokens, and brackets without their other half
    literals    what a string literal says, and how a string is quoted
    numbers     which numbers fit their places
    parsing     tokens → tree, by way of the parser, which sees neither strings nor unfit numbers
    tree        what a tree consists of: its nodes, selectors and the time they reach back
    placeholders  what is filled into the strings of a user's text, such as the workload's name
    reading     a user's text → tree, or what is wrong with it and where
    writing     tree → text, with more matchers for each selector
    matchers    label matchers that every selector gets
    policy      what the operator allows, and which matchers keep a selector to one namespace
"""

from keda_gpu_scaler.query.promql.literals import quoted
from keda_gpu_scaler.query.promql.placeholders import Values
from keda_gpu_scaler.query.promql.policy import Policy, number, own

__all__ = ["Policy", "Values", "number", "own", "quoted"]
