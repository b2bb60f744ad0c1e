"""A command's `--help`, and its answer to a mistyped option, import nothing heavy: modules are counted, not seconds."""

import json
import subprocess
import sys

import pytest
from commands import environment
from members import MEMBERS, load

HEAVY = {
    "datasets",
    "matplotlib",
    "networkx",
    "numpy",
    "openai",
    "pandas",
    "pandera",
    "polars",
    "pyarrow",
    "scipy",
    "sentence_transformers",
    "statsmodels",
    "torch",
    "transformers",
    "xllamacpp",
}
COMMANDS = {
    name: entry for member in MEMBERS for name, entry in sorted(load(member)["project"].get("scripts", {}).items())
}
ASK_FOR_HELP = """
import contextlib, importlib, io, json, sys, threading
import typer

name, entry = sys.argv[1:]
module, function = entry.split(":")
main = getattr(importlib.import_module(module), function)
verbs = getattr(typer.main.get_command(sys.modules[module].app), "commands", {})
answers = {}
for words in [["--help"], ["--hepl"], *([verb, word] for verb in verbs for word in ("--help", "--hepl"))]:
    sys.argv = [name, *words]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as exit_:
            answers[" ".join(words)] = [exit_.code, said.getvalue()]
print(json.dumps([answers, sorted({name.partition(".")[0] for name in sys.modules}), threading.active_count()]))
"""


def test_there_are_commands() -> None:
    assert {"build-personalized", "pluralbench", "pluralbench-release"} <= COMMANDS.keys()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_imports_nothing_heavy(name: str) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", ASK_FOR_HELP, name, COMMANDS[name]],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    answers, modules, threads = json.loads(asked.stdout)
    for words, (status, said) in answers.items():
        if words.endswith("--help"):
            assert (status, "Usage: " in said) == (0, True), words
        else:
            assert (status, "No such option: --hepl" in said) == (2, True), words
    assert not HEAVY & set(modules)
    assert threads == 1
