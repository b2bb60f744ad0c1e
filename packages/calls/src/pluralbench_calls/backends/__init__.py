"""Where answers come from: an OpenAI-compatible endpoint, the embedded model, or a ledger alone."""
