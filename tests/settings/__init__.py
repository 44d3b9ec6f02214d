"""Tests of the process settings."""
