"""Claims about what is asked of a source."""

from keda_gpu_scaler.query.snapshot_query import SnapshotQuery, merged
from keda_gpu_scaler.snapshot import observation
from keda_gpu_scaler.spec.spec import Signal


def test_what_everybody_asks_for_is_one_demand_that_covers_them_all() -> None:
    short = SnapshotQuery(Signal.POWER, "auto", frozenset({"ml"}), 255.0, 120.0)
    long = SnapshotQuery(Signal.POWER, "auto", frozenset({"web"}), 600.0, 60.0)
    both = SnapshotQuery(Signal.POWER, "auto", frozenset({"ml", "web"}), 600.0, 120.0)
    assert merged([short, long]) == both
    assert merged([short]) == short


def test_a_mig_instance_is_on_the_board_of_its_uuid() -> None:
    assert observation.uuid_of("GPU-1/7") == observation.uuid_of("GPU-1") == "GPU-1"
