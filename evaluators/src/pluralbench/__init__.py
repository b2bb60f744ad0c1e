"""Score reward models on benchmarks in which better depends on who is asking."""
