"""Claims about the record: what people are shown of a decision."""
