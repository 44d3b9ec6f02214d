"""The record: one decision with everything it was made of, for people.

Pure. It is built on request, from the inputs of the decision, by the same functions;
`explain`, the HTTP API, the status page and the history all render it.
"""
