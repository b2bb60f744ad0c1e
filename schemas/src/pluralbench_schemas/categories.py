"""The English names of categories of prompts, from `categories.toml`: a new one is a line there."""

import tomllib
from pathlib import Path

CATEGORIES: dict[str, str] = tomllib.loads(Path(__file__).with_name("categories.toml").read_text(encoding="utf-8"))
"""What categories are called in English, by their names in Chinese."""
