"""Calls in batches: through a Batch API, or as files in OpenAI's batch format."""
