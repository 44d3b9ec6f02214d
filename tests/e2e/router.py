"""What the router in front of the workloads shows: it exists where no pod does.

A name without a workload stands for any other sign of work: a queue, a cron job, a gateway.
"""


def offered(namespace: str, name: str) -> str:
    """Return the PromQL for what is offered under a name, in percent of one GPU."""
    labels = f'namespace="{namespace}",workload="{name}"'
    return f"simulator_router_offered_load_percent{{{labels}}}"
