"""Reports in LaTeX: tables fit a page, marks are explained, every name is printed, and LaTeX compiles them."""

import re
import shutil
import subprocess
from pathlib import Path
from string import punctuation

import polars as pl
import pytest
from figure_runs import benchmark_run, with_references
from hypothesis import given
from hypothesis import strategies as st
from pluralbench.reports.tables import Column, Report, Row, Table
from pluralbench.reports.writing import format_report
from pluralbench.results.numbers import three_digits
from pluralbench_measures.bootstrap import Estimate
from pluralbench_schemas import LANGUAGES
from rendered import render

NAMES = [punctuation, "[x] a--b 'c' ''d''", "*starred", "50%_of&{c} $m$ #1 ~^\\", "Größe ñ ł ő – † … − ≥ ρ"]
LONG = "Skywork-Reward-V2-Llama-3.1-8B-finetuned-on-the-preferences-of-people"
DOCUMENT = r"""\documentclass[%s]{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx}
\begin{document}
%s
\end{document}
"""


def table(names: list[str], columns: list[str], title: str = "A title", groups: str = "") -> Table:
    row = [Estimate(0.5, 0.4, 0.6, clusters=4), 0.25, None, *[0.1234] * len(columns)][: len(columns)]
    rows = [Row(name, row, quiet=name == "coin", group=f"Group {n // 5}") for n, name in enumerate(names)]
    return Table(title, "model", [Column(text, three_digits) for text in columns], rows, groups)


LANGUAGE_NAMES = [language.name for language in LANGUAGES.values()]
TABLES = {
    "narrow": [table(["a", "b", "coin"], ["overall"])],
    "languages": [table([f"{LONG}-{n}" for n in range(3)], ["overall", *LANGUAGE_NAMES])],
    "languages of many models": [table([f"{LONG}-{n}" for n in range(25)], ["overall", *LANGUAGE_NAMES])],
    "tall": [table([f"row {n}" for n in range(90)], ["overall", "Chat", "Safety"], groups="group")],
    "names": [table(NAMES, ["overall", *NAMES], title=" ".join(NAMES)), table([LONG, "coin"], ["overall", "Chat"])],
}


def latex_of(tables: list[Table], notes: list[str]) -> str:
    return str(format_report(Report(tables, notes, pl.DataFrame()), "latex", None))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex (Debian: texlive-latex-recommended)")
@pytest.mark.parametrize("what", [pytest.param(what, marks=[pytest.mark.heavy] * (what != "names")) for what in TABLES])
def test_latex_compiles_and_fits_a_page(what: str, tmp_path: Path) -> None:
    text = latex_of(TABLES[what], ["Accuracy in %", "A note with 50%_of&{c} <0.001 & more."])
    for layout in ("a4paper", "letterpaper,twocolumn"):
        (tmp_path / "t.tex").write_text(DOCUMENT % (layout, text), encoding="utf-8")
        command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        log = done.stdout.decode(errors="replace")
        assert done.returncode == 0, log[-2000:]
        assert not re.findall(r"Overfull|Float too large|Missing character", log), log
        assert (tmp_path / "t.pdf").stat().st_size > 10_000


def test_every_mark_is_explained_where_it_is() -> None:
    text = latex_of(TABLES["narrow"], ["Accuracy in %"])
    assert text.startswith("% Needs \\usepackage{booktabs,graphicx}.\n\n\\begin{table}[tp]\n\\centering\n")
    (notes,) = re.findall(r"\\footnotesize (.+)}\n\\end{table}", text)
    assert notes == (
        "Brackets: 95 \\% confidence intervals. † Wide interval: only 4 prompts or users. "
        "Below the line: baselines on the same items. Accuracy in \\%."
    )
    assert re.search(r" b & .+ \\\\\n\\midrule\n coin & ", text)
    plain = latex_of([Table("t", "model", [Column("n"), Column("m")], [Row("a", [1, None])])], [])
    assert "Brackets" not in plain
    assert "– No value." in plain
    assert "Needs" in plain.splitlines()[0]
    assert "LuaLaTeX" not in plain
    assert "LuaLaTeX" in latex_of([table(["奖励模型"], ["overall"])], [])


def test_a_table_that_is_too_wide_turns_on_its_side_and_a_tall_one_is_cut() -> None:
    on_its_side = latex_of(TABLES["languages"], [])
    assert on_its_side.count("\\begin{table") == 1
    assert on_its_side.count("\n Turkish & ") == 1
    tall = latex_of(TABLES["tall"], [])
    assert [len(re.findall(r"(?m)^ Group .+ \\\\$", part)) for part in tall.split("\\end{table")] == [36, 36, 18, 0]


@given(st.text(punctuation + "ab ", min_size=1))
def test_no_name_has_a_command_in_it(name: str) -> None:
    row = next(
        line
        for line in latex_of([table([f"x{name}"], ["overall"])], []).splitlines()
        if line.startswith((" x", " \\shortstack[l]{x"))
    )
    free = re.sub(r"\\(?:[&%$#_{}]|text\w+{}|shortstack\[l]|ensuremath{[^}]*}|\\)", "", row)
    assert "\\" not in free
    assert not set(free.partition("0.5")[0]) & set("%$#_^~")


def test_a_report_of_runs_has_one_float_each_and_notes_on_all() -> None:
    runs = [with_references(benchmark_run(n, name)) for n in range(2) for name in ("reward-bench", "personalized")]
    text = str(render(runs, "latex"))
    assert text.count("\\caption{") == 2
    assert text.index("\\footnotesize\\noindent Accuracy in \\%") > text.rindex("\\end{table")
