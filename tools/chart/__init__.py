"""Everything about the chart that follows from the rest: `make chart` writes it."""
