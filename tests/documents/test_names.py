"""The page of names: it lists every setting as the commands, Python, `run.json` and recipes call it."""

import re

from members import ROOT
from names_table import tables
from pluralbench.commands.app import program


def test_the_page_of_names_has_the_tables_of_today() -> None:
    page = (ROOT / "docs" / "reference" / "names.md").read_text(encoding="utf-8")
    assert page.partition("\n## ")[2] == "\n\n".join(tables()).removeprefix("## ") + "\n"


def test_the_readme_of_the_evaluator_lists_each_verb_once() -> None:
    readme = (ROOT / "evaluators" / "README.md").read_text(encoding="utf-8")
    rows = readme.partition("| command |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [verb for row in rows for verb in re.findall(r"`([a-z-]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(verb for verbs in program.verbs.values() for verb in verbs)
