"""Imports without optional packages that libraries load whenever they are installed."""

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Make these packages seem missing to imports; the libraries that use them work without.

    structlog and httpx load Rich and Pygments if they are installed, for tracebacks in colors and
    for httpx's command line. They are always installed, because Typer depends on them. httpcore
    loads Trio, for programs on that event loop, and h2, for clients that ask for HTTP/2: 6 MiB.
    """
    loaded = {name: sys.modules[name] for name in names if name in sys.modules}
    # The import system's reference: a module with None in `sys.modules` cannot be found.
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(loaded)
