"""Recorded work → the replicas that other settings, recipes and sizes would have given.

Pure. Reading a Prometheus, and all that people see, is in `cli/`.

    loop       the closed loop that loops of tests, scores and replays share
    view       simulated pods → the snapshot of them
    recipes    KEDA's own trigger with queries that people write
    work       what a workload was given to do
    replay     work + a way to scale → replicas, and what they cost
"""
