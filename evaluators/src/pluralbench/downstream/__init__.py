"""Effects of reward models on a policy: best-of-N, policy optimization, and how well benchmarks predict both."""
