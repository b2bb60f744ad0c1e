"""English names of prompt categories. To add one, add a line to `categories.toml`."""

import tomllib
from pathlib import Path

CATEGORIES: dict[str, str] = tomllib.loads(Path(__file__).with_name("categories.toml").read_text(encoding="utf-8"))
"""English names of categories by their Chinese names."""
