"""What decisions and verdicts amount to."""
