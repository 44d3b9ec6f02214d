"""How one interpreter serves calls while a thread works on a snapshot of many pods.

What a thread does not give up, the event loop waits for: the interpreter itself, for as long as a
thread may keep it, and the whole of a collection of garbage.
"""

import gc
import sys

SWITCH_SECONDS = 0.0001
"""A call needs the interpreter several times, and each time waits for a thread that computes. The
default of 5 ms makes tens of milliseconds of a call."""
COLLECTIONS = (1_000, 2_000, 20)
"""With the defaults, each snapshot of thousands of pods makes Python look for garbage in everything
that there is, twice, and for a tenth of a second. Young garbage is still looked for often, and in
little at a time. What is older is looked at after a few million objects, and all that there is
after tens of millions: pods and samples are no garbage of this kind, whatever becomes of them."""


def share() -> None:
    """Let threads give up the interpreter soon, and let collections be few."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECTIONS)


def keep_modules() -> None:
    """Leave what exists now, which are mostly modules, out of all later collections."""
    gc.collect()
    gc.freeze()
