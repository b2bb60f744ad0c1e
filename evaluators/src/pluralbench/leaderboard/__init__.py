"""Checks of leaderboard submissions, and the static site of a leaderboard."""
