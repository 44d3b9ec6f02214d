"""What builds and starts programs, servers and worlds, for tools, benchmarks and tests alike."""
