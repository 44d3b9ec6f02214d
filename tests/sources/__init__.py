"""Tests of the sources, over real sockets to servers that can misbehave."""
