"""The options of all commands of the workspace."""

import importlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

from members import MEMBERS, load
from pluralbench_runs.command import command_of

COMMANDS = {name: entry for member in MEMBERS for name, entry in load(member)["project"].get("scripts", {}).items()}


def commands() -> Iterator[tuple[str, Any]]:
    """Each command and each of its verbs, by the words that call it."""
    for name, entry in COMMANDS.items():
        command = command_of(importlib.import_module(entry.partition(":")[0]).program)
        yield name, command
        for verb, one in getattr(command, "commands", {}).items():
            yield f"{name} {verb}", one


@cache
def options() -> dict[str, dict[tuple[Any, ...], list[str]]]:
    """What each option is, and in which commands."""
    found: dict[str, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for words, command in commands():
        for option in (option for option in command.params if option.opts[0].startswith("-")):
            what = option.help, str(option.type_descriptor.annotation), option.metavar, option.multiple
            found["/".join([*option.opts, *option.secondary_opts])][what].append(words)
    return found
