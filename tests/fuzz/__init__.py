"""Foreign bytes for every reader: coverage-guided by `make fuzz`, and its corpus in `make test`."""
