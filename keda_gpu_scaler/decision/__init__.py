"""TriggerSpec + snapshot → value, activity, state, and the reason in one sentence. Pure.

In the order of `decision.decide`:

    pod_state   each pod: whether it counts, whether its load is known, which samples count
    load        the workload: its pods and replicas, and the sum of their loads, which is
                over_time while replicas come and go, or that of the newest samples if it is more
    decision    the state, and all that follows from it
    value       the number for the HPA
    activity    whether its own GPUs are in use; activation: whether anything else says so
    reasons     each in words

`memory` is for loads that become unknown, and `recommendation` is what the HPA will make of it.
"""
