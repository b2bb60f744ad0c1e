"""Train personalized reward models with and without a profile, and compare them."""
