"""What was found: items, metrics and provenance, typed and versioned."""
