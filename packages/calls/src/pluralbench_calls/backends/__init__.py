"""Backends: an OpenAI-compatible endpoint, the embedded model, or recorded answers alone."""
