"""PromQL that users write: parsed, checked, restricted to a namespace, and generated again.

Pure. Nothing here sends anything. The text that is sent is written from the parsed tree, so that a
server cannot read it in another way.

    tokens        a text's tokens: its strings and numbers, brackets without their other half
    parsing       tokens → tree, by way of the parser, which sees neither strings nor unfit numbers
    tree          what a tree consists of, the time its selectors reach back, and its text
    placeholders  what is filled into the strings of a user's text, such as the workload's name
    policy        what is wrong with a user's text, what the operator allows, the added matchers
"""

from keda_gpu_scaler.query.promql.placeholders import Values
from keda_gpu_scaler.query.promql.policy import Policy, number, own

__all__ = ["Policy", "Values", "number", "own"]
