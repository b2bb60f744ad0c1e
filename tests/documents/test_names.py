"""The page of names: it lists every setting as the commands, Python, `run.json` and recipes call it."""

from members import ROOT
from names_table import tables


def test_the_page_of_names_has_the_tables_of_today() -> None:
    page = (ROOT / "docs" / "reference" / "names.md").read_text(encoding="utf-8")
    assert page.partition("\n## ")[2] == "\n\n".join(tables()).removeprefix("## ") + "\n"
