"""The terminal: what the commands print to."""

from rich.console import Console

console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
errors = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)
