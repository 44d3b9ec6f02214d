"""TriggerSpec → the texts that a source is asked with; what exporters call their metrics. Pure."""
