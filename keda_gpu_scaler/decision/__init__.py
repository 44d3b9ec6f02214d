"""TriggerSpec + snapshot → value, activity, state, and the reason in one sentence. Pure.

In the order of `decision.decide`:

    pod_state   each pod and replica: whether it counts, whether its load is known, and which
                samples count
    lives       the sum of the loads over time, while replicas come and go; `newest`: by the newest
                samples, if that is more
    load        the workload: its pods, its replicas, these sums, and the replicas to come; `value`:
                the number for the HPA, of a sum that is exact, or a lower bound
    activity    whether its own GPUs are in use; activation: whether anything else says so
    decision    the state, and all that follows from it; `Memory`: for loads that become unknown
    reasons     each in words
    summary     what people are told, and what the HPA will make of it
"""
