"""Figures and tables of runs and of verdicts."""

from typing import Literal

Format = Literal["table", "markdown", "json", "csv"]
"""How a report is printed: for people as a table or Markdown, for programs as JSON or CSV."""
