"""The options of all commands of the workspace."""

import importlib
from collections import defaultdict
from functools import cache
from typing import Any

from members import MEMBERS, load
from pluralbench_runs.command import command_of

COMMANDS = {name: entry for member in MEMBERS for name, entry in load(member)["project"].get("scripts", {}).items()}


@cache
def options() -> dict[str, dict[tuple[Any, ...], list[str]]]:
    """What each option is, and in which commands."""
    found: dict[str, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, entry in COMMANDS.items():
        command = command_of(importlib.import_module(entry.partition(":")[0]).app, name)
        verbs = {f"{name} {verb}": one for verb, one in getattr(command, "commands", {}).items()}
        for words, one in {name: command, **verbs}.items():
            for option in (option for option in one.params if option.opts[0].startswith("-")):
                what = option.help, str(option.type_descriptor.annotation), option.metavar, option.multiple
                found["/".join([*option.opts, *option.secondary_opts])][what].append(words)
    return found
