"""How a decision looks in a line of the log."""

from keda_gpu_scaler import facts

_DECIMALS = 3


def whose(fact: facts.Evaluated) -> dict[str, str]:
    """Return the keys that tell of which trigger a line is."""
    return {
        "namespace": fact.scaled_object.namespace,
        "scaled_object": fact.scaled_object.name,
        "metric": fact.spec.metric_name,
        "workload": fact.spec.workload,
    }


def described(fact: facts.Evaluated) -> dict[str, object]:
    """Return the keys of a decision."""
    decided = fact.decision
    return {
        **whose(fact),
        "state": str(decided.state),
        "active": decided.active,
        "value": rounded(decided.value),
        "average": rounded(decided.average),
        "evidence": None if decided.evidence is None else str(decided.evidence),
        "reason": decided.reason,
    }


def rounded(value: float | None) -> float | None:
    """Return a number with as many digits as people read."""
    return None if value is None else round(value, _DECIMALS)
