"""What is scored: benchmarks, their items, and what a prompt shows."""
