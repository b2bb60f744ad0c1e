"""Planners: trained on what people expect of answers, asked for plans, and held against the true aspects."""
