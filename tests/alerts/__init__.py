"""The alert store, its records, and how replicas exchange them."""
