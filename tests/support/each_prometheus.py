"""A test on each kind of Prometheus that SERVERS names."""

import pytest

from testbed import servers
from testbed.prometheus import KINDS


def each(*, but: str = "") -> list[object]:
    """Return those but one as parameters, each of which marks a test with its program."""
    chosen = (name for name in servers.chosen() if name in KINDS and name != but)
    return [pytest.param(name, marks=pytest.mark.needs(name)) for name in chosen]


ON_EVERY_SERVER = pytest.mark.parametrize("prometheus", each(), indirect=True)
"""Runs a test that has `prometheus` on each: what it claims depends on the server's answers."""
