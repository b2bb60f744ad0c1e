"""Figures and tables of runs and of verdicts."""

from typing import Literal

Format = Literal["table", "markdown", "latex", "json", "csv"]
"""How a report is printed: for people as a table, Markdown or LaTeX, for programs as JSON or CSV."""
