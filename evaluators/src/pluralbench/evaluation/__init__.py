"""Verbs that score, judge, train, compare and merge."""
