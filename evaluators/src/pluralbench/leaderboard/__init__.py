"""Submissions to a leaderboard, checked, and the static site of many runs."""
