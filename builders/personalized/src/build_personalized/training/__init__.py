"""Build preferences with users, the training data of personalized reward models (paper, appendix B)."""
