"""Runs: a model on a benchmark, and two runs compared."""
