"""How long a text keeps its reader computing."""

import time
from collections.abc import Callable

MOST_SECONDS = 2.0
"""Of CPU time: a hundred times what the tests' texts take, a tenth of what they take where a reader
goes back over all that it has read for each character."""


def cpu_seconds(read: Callable[[], object]) -> float:
    before = time.thread_time()
    read()
    return time.thread_time() - before
