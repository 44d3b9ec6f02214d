"""Why a workload was (not) scaled: what would change it, what holds it, and which pods go first."""
