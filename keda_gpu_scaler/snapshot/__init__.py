"""What a source showed and what the cluster says → every pod, its samples, its status. Pure."""
