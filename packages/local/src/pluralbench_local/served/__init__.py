"""Reward models behind servers. Conversations are tokenized locally."""
