"""Reward models behind inference servers: requests to engines and their replies, without torch."""
