"""Calls as files: in OpenAI's batch format to whatever works through them, and the answers back from its results."""
