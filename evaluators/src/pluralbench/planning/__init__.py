"""Train planners, write plans, and evaluate plans against the true aspects."""
