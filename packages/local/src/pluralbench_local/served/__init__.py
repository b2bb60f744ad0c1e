"""Reward models behind servers, whose conversations are made into tokens here."""
