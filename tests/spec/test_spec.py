"""What the triggers of a snapshot ask for together."""

from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery, merged


def test_one_query_covers_all_triggers_of_a_snapshot() -> None:
    short = SnapshotQuery(Signal.POWER, "auto", frozenset({"ml"}), 255.0, 120.0)
    long = SnapshotQuery(Signal.POWER, "auto", frozenset({"web"}), 600.0, 60.0)
    both = SnapshotQuery(Signal.POWER, "auto", frozenset({"ml", "web"}), 600.0, 120.0)
    assert merged([short, long]) == both
    assert merged([short]) == short
