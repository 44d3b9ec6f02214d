"""The book of alerts, its entries, and how replicas write them to each other."""
