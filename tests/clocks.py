"""Time that passes when a test says so."""


class Clock:
    """Seconds that never go back by themselves."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time, as `time.monotonic` does."""
        return self.now
