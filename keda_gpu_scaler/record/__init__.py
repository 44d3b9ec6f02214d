"""What people are told beside the reason of a decision. Pure.

`record` is a decision with everything it was made of, which `explain`, the HTTP API, the status
page and the history render; `build` makes it on request, by the functions of the decision. `causes`
says why nothing is read, and the cure, for the reason and for `check --live`.
"""
