"""Exporters that are scraped directly, as a source."""
