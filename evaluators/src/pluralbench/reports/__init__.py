"""Figures and tables of runs and of verdicts."""

from typing import Literal

Format = Literal["table", "markdown", "latex", "json", "csv"]
"""Output format of a report: a terminal table, Markdown or LaTeX for reading; JSON or CSV for programs."""
