"""What reward models do to a policy: best-of-N, policy optimisation, and how well a benchmark predicts either."""
