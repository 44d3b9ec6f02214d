"""TriggerSpec + snapshot → value, activity, state, and the reason in one sentence. Pure.

In the order in which they work:

    pod_state   whether each pod counts, whether its load is known, and which samples count
    lives       the sum over the replicas while they come and go, and over their newest samples
    load        the workload's pods, its replicas, their sum, and the number for the HPA
    activity    whether its own GPUs are in use
    decision    the state and the answer, and what is remembered for an unknown load
    reasons     each of these in words
    activation  another workload, an alert and a demand: activity, and the number of a demand
    summary     the line for people, and the replicas that it asks for; `scale_out`: did they help
"""
