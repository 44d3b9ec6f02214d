"""How much memory the snapshots may take together."""

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.kept_bytes import (
    NAMESPACE_BYTES,
    OWN_BYTES,
    SHARED_BYTES,
    KeptBytes,
)
from keda_gpu_scaler.snapshot.snapshot import Key
from keda_gpu_scaler.spec.spec import OwnQuery, Signal

SHARED = Key("default", Signal.UTILIZATION, "auto", is_long_range=False, query=None)


def own(text: str) -> Key:
    return SHARED._replace(query=OwnQuery(text, (), is_complete=True))


def test_all_shared_snapshots_have_one_room() -> None:
    kept = KeptBytes()
    kept.keep(SHARED, "a", SHARED_BYTES - 10)
    kept.keep(SHARED, "b", SHARED_BYTES - 5)  # in place of the one before
    other = SHARED._replace(signal=Signal.POWER)
    with pytest.raises(errors.SourceMalformedError, match="all snapshots together may take 64 MiB"):
        kept.keep(other, "a", 6)
    kept.keep(other, "a", 5)
    kept.drop(SHARED)
    kept.keep(other, "a", SHARED_BYTES)


def test_own_queries_have_a_room_for_each_namespace_and_one_for_all() -> None:
    kept = KeptBytes()
    kept.keep(SHARED, "a", SHARED_BYTES)
    kept.keep(own("x"), "a", NAMESPACE_BYTES - 1)
    with pytest.raises(errors.SourceMalformedError, match="the own queries of namespace a"):
        kept.keep(own("y"), "a", 2)
    for tenant in range(OWN_BYTES // NAMESPACE_BYTES - 1):
        kept.keep(own(f"x{tenant}"), f"b{tenant}", NAMESPACE_BYTES)
    with pytest.raises(errors.SourceMalformedError, match="all own queries together"):
        kept.keep(own("z"), "c", 2)
    kept.keep(own("z"), "c", 1)
