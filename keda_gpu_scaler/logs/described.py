"""What a line about a trigger says of it: whose it is, and what was decided."""

from keda_gpu_scaler import facts

DECIMALS = 3


def whose(fact: facts.Evaluated) -> dict[str, str]:
    """Say whose trigger was decided."""
    return {
        "namespace": fact.scaled_object.namespace,
        "scaled_object": fact.scaled_object.name,
        "metric": fact.spec.metric_name,
        "workload": fact.spec.workload,
    }


def decision(fact: facts.Evaluated) -> dict[str, object]:
    """Say what was decided, and why."""
    decided = fact.decision
    return {
        **whose(fact),
        "state": str(decided.state),
        "active": decided.active,
        "value": _known(decided.value),
        "average": _known(decided.average),
        "evidence": None if decided.evidence is None else str(decided.evidence),
        "reason": decided.reason,
    }


def rounded(value: float) -> float:
    """Return as many digits as people read."""
    return round(value, DECIMALS)


def _known(value: float | None) -> float | None:
    return None if value is None else rounded(value)
