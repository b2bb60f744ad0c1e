"""The table of a command: its verbs, and the functions that they are made of.

It imports nothing heavy, so that --version takes no time.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple, NoReturn


class Verb(NamedTuple):
    """A command, or a verb of one.

    Functions are named as "MODULE:FUNCTION". Their modules are imported to build the command, so they import heavy
    libraries only when they are called.

    Attributes:
        function: What the command does.
        show: Prints what the function returns; its further parameters are options too, or parameters of the function.
        made: Parameters of both that another function makes, whose own parameters are the options.
        status: First line of standard error, such as "Scoring {model}...", with parameters of the functions.
    """

    function: str
    show: str = ""
    made: Mapping[str, str] = {}
    status: str = ""


class Program(NamedTuple):
    """A command with verbs.

    Attributes:
        name: Name of the command.
        verbs: The verbs by name, by the heading in --help.
        default: What the command does without a verb. None: a verb is required.
        help: Help of a command that requires a verb, like a docstring.
        common: Options that the short help of its verbs shows, most used first.
        distribution: Distribution whose version --version shows. Default: `name`.
        mistakes: Further exceptions whose message is meant for the user.
    """

    name: str
    verbs: Mapping[str, Mapping[str, Verb]] = {}
    default: Verb | None = None
    help: str = ""
    common: Sequence[str] = ()
    distribution: str = ""
    mistakes: tuple[type[Exception], ...] = ()

    def run(self) -> NoReturn:
        """Run the command and exit with the status of `pluralbench_runs.run`.

        If the first word is a verb, only its modules are imported, and for --version none.
        """
        if sys.argv[1:] == ["--version"]:
            sys.stdout.write(f"{self.version_line()}\n")
            sys.exit(0)
        from pluralbench_runs.command import command_of
        from pluralbench_runs.guard import run

        words = sys.argv[1:2]
        named = {panel: {verb: own[verb] for verb in words if verb in own} for panel, own in self.verbs.items()}
        program = self._replace(verbs=named) if any(named.values()) else self
        run(lambda: command_of(program)(standalone_mode=False), self.distribution or self.name, mistakes=self.mistakes)

    def version_line(self) -> str:
        """Return what --version prints."""
        distribution = self.distribution or self.name
        return f"{distribution} {version(distribution)}"
