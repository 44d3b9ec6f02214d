"""What tests of sources share."""

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture
def ns() -> str:
    """A namespace of its own for each test, where they share a server."""
    return f"team-{next(_numbers)}"
