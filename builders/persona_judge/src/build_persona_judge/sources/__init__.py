"""Loaders of the sources, one module each."""
