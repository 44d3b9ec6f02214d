"""How much memory the snapshots may take together, and those of users' own queries among them."""

from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.snapshot import Key

MIB = 2**20
SHARED_BYTES = 64 * MIB
"""For the snapshots that triggers share: 10,000 pods with a GPU each take 17 MiB for one signal."""
OWN_BYTES = 24 * MIB
"""For the snapshots of users' own queries: ten pods with a GPU each take 20 KiB."""
NAMESPACE_BYTES = 8 * MIB
"""For those of one namespace, so that no tenant takes the memory of all."""


class _Kept(NamedTuple):
    payer: str
    """The namespace of the ScaledObject that asked first."""
    size: int


class KeptBytes:
    """What each snapshot takes."""

    def __init__(self) -> None:
        """Start with no snapshots."""
        self._kept: dict[Key, _Kept] = {}

    def keep(self, key: Key, payer: str, size: int) -> None:
        """Note what a snapshot takes from now on.

        Args:
            key: the snapshot.
            payer: the namespace of the ScaledObject that asked for it first.
            size: its bytes.

        Raises:
            errors.SourceMalformedError: there is no room for it; nothing was noted.
        """
        others = [
            one
            for other, one in self._kept.items()
            if other != key and (other.query is None) is (key.query is None)
        ]
        if key.query is None:
            limits = [(SHARED_BYTES, "all snapshots", others)]
        else:
            theirs = [one for one in others if one.payer == payer]
            limits = [
                (OWN_BYTES, "all own queries", others),
                (NAMESPACE_BYTES, f"the own queries of namespace {payer}", theirs),
            ]
        for limit, whose, taken in limits:
            if sum(one.size for one in taken) + size > limit:
                raise errors.SourceMalformedError(
                    f"samples that take {size / MIB:.1f} MiB, and {whose} together may take "
                    f"{limit // MIB} MiB; expected fewer pods, or shorter windows"
                )
        self._kept[key] = _Kept(payer, size)

    def drop(self, key: Key) -> None:
        """Note that a snapshot is gone."""
        self._kept.pop(key, None)
