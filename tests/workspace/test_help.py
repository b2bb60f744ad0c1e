"""What every command answers at once: `--help`, `--version`, a mistyped option, and what a shell completes.

None of it imports anything heavy: modules are counted, not seconds. The help is one screen, from which all options are
one word away.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import version

import pytest
from command_options import COMMANDS, commands
from commands import environment
from pluralbench_runs import RecipeError
from pluralbench_runs.help_pages import page_text
from rich.text import Text

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


ASK_ONE = """
import sys

sys.argv = ["pluralbench", *sys.argv[1:]]
from pluralbench.commands.app import main

try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize("words", ["score --help", "score . --device", "check --help", "leaderboard --help"])
def test_help_and_mistakes_of_these_verbs_import_no_frames(words: str) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", ASK_ONE, *words.split()], env=environment(), capture_output=True, text=True, check=False
    )
    assert asked.returncode == (0 if "--help" in words else 2)
    assert not HEAVY & {*asked.stderr.splitlines()[-1].split()}


def test_help_is_a_screen_and_leads_to_every_option() -> None:
    for words, command in commands():
        page = command.page
        short, whole = (plain(page_text(page, words, topic, width=80)) for topic in ("", "all"))
        assert len(short) <= 40, words
        assert not [line for line in [*short, *whole] if re.search("<(str|int|float|bool)|object at", line)], words
        groups = [plain(page_text(page, words, group, width=80)) for group in page.groups]
        for option in command.params:
            name = "/".join([*option.opts, *option.secondary_opts])
            if name.startswith("--") and name != "--version" and not option.hidden:
                found = [line for lines in groups for line in lines if f"{line} ".startswith(f"  {name} ")]
                assert len(found) == 1, (words, name)
        with pytest.raises(RecipeError, match="has no group `nosuch` of options"):
            page_text(page, words, "nosuch")


def plain(text: str) -> list[str]:
    return Text.from_ansi(text).plain.splitlines()


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
