"""Third-person labels: people answer for others from a persona alone (paper, section 5 and A.4)."""
