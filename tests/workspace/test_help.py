"""What every command answers at once: `--help`, `--version`, a mistyped option, and what a shell completes.

None of it imports anything heavy: modules are counted, not seconds.
"""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from command_options import COMMANDS
from commands import environment

HEAVY = {
    "datasets",
    "huggingface_hub",
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
    "inspect_ai",
    "torch",
    "transformers",
    "xllamacpp",
}
# A verb of the evaluator is the function that computes, in a module that imports what it computes with.
ALLOWED = {"pluralbench": {"numpy", "polars", "pyarrow"}}
ASK_FOR_HELP = """
import contextlib, importlib, io, json, os, sys, threading

name, entry = sys.argv[1:]
module, function = entry.split(":")
main = getattr(importlib.import_module(module), function)
verbs = [verb for listed in sys.modules[module].program.verbs.values() for verb in listed]
answers = {}

def ask(*words):
    sys.argv = [name, *words]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as exit_:
            return [exit_.code, said.getvalue()]

mistyped = [["--hepl"], *([verb, "--hepl"] for verb in verbs[:1])]
for words in [["--help"], *([verb, "--help"] for verb in verbs), *mistyped]:
    answers[" ".join(words)] = ask(*words)
told = ask("--version")
os.environ |= {f"_{name}_COMPLETE".replace("-", "_").upper(): "complete_bash", "COMP_CWORD": "1"}
os.environ["COMP_WORDS"] = f"{name} --vers"
completed = ask()
modules = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([answers, told, completed, modules, threading.active_count()]))
"""


def test_there_are_commands() -> None:
    assert {"build-personalized", "pluralbench", "pluralbench-release"} <= COMMANDS.keys()


@pytest.mark.heavy
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_imports_nothing_heavy(name: str) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", ASK_FOR_HELP, name, COMMANDS[name]],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    answers, told, completed, modules, threads = json.loads(asked.stdout)
    assert told == [0, f"{name} {version(name)}\n"]
    assert completed == [0, "--version\n"]
    for words, (status, said) in answers.items():
        if words.endswith("--help"):
            assert (status, "Usage: " in said, "-completion" in said) == (0, True, False), words
            assert f"{name} " in " ".join(said.split()).partition("Example")[2], f"{name} {words} has no example"
        else:
            assert (status, "No such option: --hepl" in said) == (2, True), words
    assert not (HEAVY - ALLOWED.get(name, set())) & set(modules)
    assert threads == 1


@pytest.mark.heavy
def test_the_evaluator_is_a_module_too() -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "pluralbench", "--version"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout == f"pluralbench {version('pluralbench')}\n"
