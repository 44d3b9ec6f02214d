"""TriggerSpec → the query texts for a source; the names of the exporters' metrics. Pure."""
