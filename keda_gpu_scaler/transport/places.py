"""How a bounded number of places is shared among namespaces: one namespace alone never takes all.

Pure.
"""


class Places:
    """Places for calls or for alerts, and which share of them a namespace may take.

    A namespace may take three times as many as there are free places. Alone it takes three quarters
    of all; each of two that flood takes three sevenths, and so on: there is always room for one
    that asks little. (Dynamic thresholds, as switches share their buffers: Choudhury and Hahne,
    IEEE/ACM Transactions on Networking 6, 1998.)
    """

    _FREE_TIMES = 3

    def __init__(self, most: int) -> None:
        self.free = most
        self._taken: dict[str, int] = {}

    def has_room(self, namespace: str) -> bool:
        """Return whether a namespace may take one more place."""
        return self._taken.get(namespace, 0) < self._FREE_TIMES * self.free

    def take(self, namespace: str) -> bool:
        """Take a place for a namespace, if it may have one more, and say so."""
        has_room = self.has_room(namespace)
        if has_room:
            self._taken[namespace] = self._taken.get(namespace, 0) + 1
            self.free -= 1
        return has_room

    def give_back(self, namespace: str) -> None:
        self.free += 1
        still_taken = self._taken[namespace] - 1
        if still_taken:
            self._taken[namespace] = still_taken
        else:
            del self._taken[namespace]
