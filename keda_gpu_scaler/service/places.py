"""How many calls may be open at once, and which share of that a namespace may take. Pure."""


class Places:
    """Counts the open calls of each namespace.

    A namespace may have three times as many open calls as there are free places. Alone it takes
    three quarters of all; each of two that flood takes three sevenths, and so on: there is always
    room for one that asks little. (Dynamic thresholds, as switches share their buffers: Choudhury
    and Hahne, IEEE/ACM Transactions on Networking 6, 1998.)
    """

    _FREE_TIMES = 3

    def __init__(self, most: int) -> None:
        """Start with no open call; at most `most` are open at once."""
        self._free = most
        self._open: dict[str, int] = {}

    def take(self, namespace: str) -> bool:
        """Take a place for a call about a namespace, if it may have one more."""
        taken = self._open.get(namespace, 0)
        is_free = taken < self._FREE_TIMES * self._free
        if is_free:
            self._open[namespace] = taken + 1
            self._free -= 1
        return is_free

    def give_back(self, namespace: str) -> None:
        """Give a place back that was taken."""
        self._free += 1
        still_open = self._open[namespace] - 1
        if still_open:
            self._open[namespace] = still_open
        else:
            del self._open[namespace]
