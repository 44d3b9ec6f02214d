"""How many calls may be open at once, and which share of that a namespace may take. Pure."""

from collections import Counter


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
        self._most = most
        self._open: Counter[str] = Counter()

    def take(self, namespace: str) -> bool:
        """Take a place for a call about a namespace, if it may have one more."""
        free = self._most - self._open.total()
        is_free = self._open[namespace] < self._FREE_TIMES * free
        if is_free:
            self._open[namespace] += 1
        return is_free

    def give_back(self, namespace: str) -> None:
        """Give a place back that was taken."""
        self._open[namespace] -= 1
        if not self._open[namespace]:
            del self._open[namespace]
