"""Figures of runs and of verdicts."""
