"""Builds preferences with users: what personalized reward models learn from (paper, appendix B)."""
