"""Builds CheemsBench and CheemsPreference: annotations and model votes turned into rankings without conflict."""
