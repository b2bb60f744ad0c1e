"""Third-person labels: people answer for somebody whom they know by a persona alone (paper, section 5 and A.4)."""
