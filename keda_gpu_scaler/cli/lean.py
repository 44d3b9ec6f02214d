"""Imports without what libraries load only because it happens to be installed."""

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Let imports find these packages missing; each of their users has a way to do without.

    structlog and httpx load Rich and Pygments wherever they find them, for tracebacks in colors and
    for a command line of httpx. Typer brings them, so that they are always found.
    """
    loaded = {name: sys.modules[name] for name in names if name in sys.modules}
    # As the import system's reference says: with None in its place a module cannot be found.
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(loaded)
