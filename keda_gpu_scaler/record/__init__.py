"""The record: one decision with everything it was made of, for people.

Pure. It is built on request, from the inputs of the decision, by the same functions;
`explain`, the HTTP API, the status page and the history all render it.

    record    the values
    build     decision + snapshot → record
    drain     record → the pods that should go first, as annotations for people to write
    why_not   record → what would give another number of replicas
"""
