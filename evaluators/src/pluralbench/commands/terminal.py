"""Consoles that the commands print to."""

from pluralbench_runs.console import make_console

console = make_console()
errors = make_console(stderr=True)
