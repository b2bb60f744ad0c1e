"""A benchmark against a downstream result as tables: what is found, what is said of it, and what is refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from html_runs import Read
from pluralbench.downstream.correlate import correlate
from pluralbench.errors import DataError
from pluralbench_release import TablesError

Command = Callable[..., tuple[int, str, str]]
# Personalized RewardBench, Tables 2 and 5.
BENCHMARK = """\
model,art,lifestyle,society
Skywork-1B,62.06,70.78,67.88
Skywork-3B,60.89,70.37,69.18
Skywork-8B,66.62,67.04,71.88
internlm2-1_8b,48.50,58.95,55.77
internlm2-7b,65.97,71.69,74.95
internlm2-20b,63.23,67.34,67.13
"""
BEST_OF_N = """\
model,average
internlm2-7b,0.2261
internlm2-1_8b,0.2193
Skywork-1B,0.1904
Skywork-3B,0.1895
Skywork-8B,0.1871
internlm2-20b,0.1793
"""
OTHER = "model,score\nSkywork-1B,3\nSkywork-3B,1\nSkywork-8B,2\ninternlm2-1_8b,6\ninternlm2-7b,5\ninternlm2-20b,4\n"


@pytest.fixture
def tables(tmp_path: Path) -> Callable[..., list[Path]]:
    """`tables("model,score...", ...)`: files with these texts."""

    def make(*contents: str) -> list[Path]:
        paths = [tmp_path / f"{name}.csv" for name in ("benchmark", "downstream", "baseline")[: len(contents)]]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content, encoding="utf-8")
        return paths

    return make


def table(scores: dict[str, float]) -> str:
    return "model,score\n" + "".join(f'"{name}",{value}\n' for name, value in scores.items())


def test_the_page_begins_with_the_result(run: Command, tables: Callable[..., list[Path]], tmp_path: Path) -> None:
    out = tmp_path / "new" / "page.html"
    columns = ("--columns", "art,lifestyle,society", "--baseline", f"other={tables('', '', OTHER)[2]}")
    status, said, _ = run("correlate", *tables(BENCHMARK, BEST_OF_N), *columns, "--html", out)
    assert (status, said.splitlines()[-1]) == (0, f"Wrote {out}")
    page = Read(out.read_text(encoding="utf-8"))
    sentence = (
        "Over 6 reward models, the ranking by benchmark.csv and the downstream ranking have a Spearman correlation"
    )
    assert any(word.startswith(f"{sentence} of +0.26") and word.endswith("not significant.") for word in page.words)
    assert any(word.startswith("The correlation for the baseline other is ") for word in page.words)
    assert [tag for tag, _ in page.elements].count("figure") == 1
    status, _, error = run("correlate", *tables(BENCHMARK, BEST_OF_N), "--columns", "art", "--html", tmp_path)
    assert (status, error.strip()) == (2, f"Error: {tmp_path} cannot be written: Is a directory.")


def test_the_papers_row_as_json(run: Command, tables: Callable[..., list[Path]]) -> None:
    status, out, _ = run("correlate", *tables(BENCHMARK, BEST_OF_N), "--columns", "art, lifestyle,society", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["n"] == 6
    assert [round(found[name], 4) for name in ("ndcg", "rbo", "weighted_tau", "spearman")] == [
        0.9180, 0.5732, 0.3409, 0.2571,
    ]  # fmt: skip
    assert round(found["standard"]["rbo_extrapolated"], 4) == 0.8353
    assert found["p_values"]["exact"] is True
    assert found["p_values"]["orders"] == 720
    assert found["p_values"]["spearman"] == pytest.approx(237 / 720)
    assert found["intervals"]["spearman"][0] < 0 < found["intervals"]["spearman"][1]
    assert found["intervals"]["rbo"] is None
    assert found["reliability"] == {"benchmark": None, "downstream": None}
    assert found["power"] == {"models_for_significance": 98}
    assert [row["model"] for row in found["models"]][:2] == ["Skywork-1B", "Skywork-3B"]
    assert found["warnings"] == [
        "RBO takes too few values with 6 models for a reliable interval; it needs at least 8 models."
    ]


def test_what_people_read(run: Command, tables: Callable[..., list[Path]], monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark, downstream, other = tables(BENCHMARK, BEST_OF_N, OTHER)
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run(
        "correlate", benchmark, downstream, "--columns", "art,lifestyle,society", "--baseline", f"arena={other}"
    )
    assert status == 0
    for said in (
        "6 models on both sides",
        "With 6 models the p-values are large. Spearman's rho is not significant: 33 of 100 orders reach 0.26 by "
        "chance. This neither shows nor rules out that the benchmark predicts the downstream result.",
        "If the true rho is 0.26, a study needs 98 models for 80% power at p < 0.05.",
        "The truncated RBO of 6 models is at most 0.738; the extrapolated one 1.",
        "No intervals of the differences from arena: 6 models are too few for reliable intervals (minimum: 10).",
        "two-sided permutation test that swaps the two within models",
    ):
        assert said in " ".join(out.split())
    grids = [line for line in out.splitlines() if line.startswith("  ") and line.strip(" ")]
    assert len(grids) == 2 + 14, "seven statistics, twice"
    assert all(len(line.rstrip()) <= 80 and "…" not in line for line in grids)
    assert "NDCG                      0.918 [ 0.600, 0.996]  0.129" in out


@pytest.mark.heavy
def test_many_models_that_agree_are_more_than_chance(tables: Callable[..., list[Path]], run: Command) -> None:
    draw = np.random.default_rng(0)
    quality = draw.normal(size=12)
    noisy = {f"m{place}": value for place, value in enumerate(quality + 0.2 * draw.normal(size=12))}
    paths = tables(
        table(noisy), table(dict(zip(noisy, quality, strict=True))), table(dict(zip(noisy, -quality, strict=True)))
    )
    status, out, _ = run("correlate", *paths[:2], "--baseline", f"wrong={paths[2]}", "--seed", "3")
    assert status == 0
    text = " ".join(out.split())
    assert "Spearman's rho is significant (p < 0.001)." in text
    assert "In Spearman's rho, the benchmark and wrong differ significantly (p " in text
    assert "p: one-sided permutation test, the share of 9,999 random orders" in text
    found = correlate(*paths[:2], baselines={"wrong": paths[2]}, seed=3)
    gap = found.baselines["wrong"].differences["spearman"]
    assert gap.low is not None
    assert gap.low > 0
    assert found.as_dict() == correlate(*paths[:2], baselines={"wrong": paths[2]}, seed=3).as_dict()


def test_rows_may_come_in_any_order_and_names_with_spaces(tables: Callable[..., list[Path]]) -> None:
    first = correlate(*tables(BENCHMARK, BEST_OF_N), columns=["art", "lifestyle", "society"]).as_dict()
    head, *rows = BENCHMARK.splitlines()
    shuffled = "\n".join([head.replace("model", " model "), *(f"  {row}  " for row in reversed(rows))])
    again = correlate(*tables("\ufeff" + shuffled, BEST_OF_N), columns=["art", "lifestyle", "society"]).as_dict()
    for name in ("ndcg", "rbo", "weighted_tau", "spearman", "standard", "p_values", "intervals"):
        assert again[name] == first[name]


def test_models_on_one_side_only_are_left_out_and_named(tables: Callable[..., list[Path]]) -> None:
    benchmark = table({f"m{n}": n for n in range(10)})
    found = correlate(*tables(benchmark, table({"m1": 1, "m5": 3, "m3": 2, "new": 9})))
    assert list(found.names) == ["m1", "m3", "m5"]
    left_out = [warning for warning in found.warnings if warning.startswith("Left out, because only ")]
    assert [text.rpartition("/")[2] for text in left_out] == [
        "benchmark.csv has them: m0, m2, m4, m6, m7 and 2 more.",
        "downstream.csv has them: new.",
    ]
    assert "No intervals: 3 models are too few for reliable intervals; they need at least 6." in found.warnings


@pytest.mark.parametrize(
    ("benchmark", "downstream", "said"),
    [
        (
            {"a": 1, "b": 2},
            {"a": 1, "b": 2},
            "Two models have only two possible orders, so the statistics carry almost no information.",
        ),
        (
            {"a": 1, "b": 2, "c": 2, "d": 1},
            {"a": 1, "b": 2, "c": 3, "d": 4},
            "Ties in BENCHMARK: a = d, b = c. NDCG, RBO and weighted tau are means over all orders of the tied models; "
            "Spearman uses average ranks; tau-b corrects for ties.",
        ),
        (
            {"a": 1, "b": 1, "c": 1},
            {"a": 1, "b": 2, "c": 3},
            "All models have the same score in BENCHMARK, so no rank correlation exists.",
        ),
    ],
)
def test_what_says_little_is_told(
    benchmark: dict[str, float],
    downstream: dict[str, float],
    said: str,
    tables: Callable[..., list[Path]],
    run: Command,
) -> None:
    paths = tables(table(benchmark), table(downstream))
    status, out, _ = run("correlate", *paths)
    assert status == 0
    assert "".join(said.replace("BENCHMARK", str(paths[0])).split()) in "".join(out.split())
    assert run("correlate", *paths, "--json")[0] == 0


def test_without_an_order_what_is_undefined_is_null(tables: Callable[..., list[Path]]) -> None:
    found = correlate(*tables(table({"a": 1, "b": 1, "c": 1}), table({"a": 1, "b": 2, "c": 3}))).as_dict()
    assert found["spearman"] is found["standard"]["kendall_tau_b"] is found["p_values"]["spearman"] is None
    assert found["weighted_tau"] == 0
    assert found["p_values"]["weighted_tau"] == 1


GOOD, MORE = "model,score\na,1\nb,2\n", "model,score,more\na,1,2\nb,2,3\n"
CELL = "BENCHMARK: row 2 (b): the score in the column `score`"
SEVERAL = "{} has several numeric columns (score, more); name the score column, or several to average, with `{}=...`."


@pytest.mark.parametrize(
    ("benchmark", "downstream", "said"),
    [
        (
            "model,score\nx,1\ny,2\n",
            "model,score\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n",
            "No model is on both sides; model names must match exactly: BENCHMARK has x, y; DOWNSTREAM has "
            "a, b, c, d, e and 1 more.",
        ),
        (
            "model,score\na,1\ny,2\n",
            "model,score\na,1\n",
            "Only the model a is on both sides; a correlation needs at least two: BENCHMARK has a, y; DOWNSTREAM "
            "has a.",
        ),
        ("model,score\na,1\na ,2\n", GOOD, "BENCHMARK has the model a 2 times; keep one of them."),
        ("model,score\na,1\nb,n/a\n", GOOD, f"{CELL} is not a finite number: n/a."),
        ("model,score\na,1\nb,\n", GOOD, f"{CELL} is empty."),
        (
            "model,score\na,1\n,2\n",
            GOOD,
            "BENCHMARK: row 2 of the table has no `model`; add one, or remove the row.",
        ),
        (MORE, GOOD, SEVERAL.format("BENCHMARK", "columns")),
        (
            "model,remark\na,good\nb,bad\n",
            GOOD,
            "BENCHMARK has no numeric column besides `model`; its columns are model, remark.",
        ),
        ("name,score\na,1\n", GOOD, "BENCHMARK has no column `model`; it has name, score; required: model."),
        (
            "model,score, score\na,1,2\n",
            GOOD,
            "BENCHMARK has two columns with the same name; its columns are model, score, score.",
        ),
        ("model,score\n", GOOD, "BENCHMARK has no rows."),
    ],
)  # fmt: skip
def test_what_cannot_be_correlated_is_refused_in_words(
    benchmark: str, downstream: str, said: str, tables: Callable[..., list[Path]], run: Command
) -> None:
    paths = tables(benchmark, downstream)
    expected = said.replace("BENCHMARK", str(paths[0])).replace("DOWNSTREAM", str(paths[1]))
    with pytest.raises(DataError) as refused:
        correlate(*paths)
    assert str(refused.value) == expected
    status, out, err = run("correlate", *paths)
    assert (status, out) == (2, "")
    assert re.sub(r"`(\w+)=\.\.\.`", lambda name: f"`--{name[1].replace('_', '-')}`", expected) in err


def test_an_empty_file_and_a_place_that_is_none(tables: Callable[..., list[Path]], tmp_path: Path) -> None:
    paths = tables("", BEST_OF_N)
    with pytest.raises(TablesError):
        correlate(*paths)
    with pytest.raises(DataError) as refused:
        correlate(tmp_path / "none.csv", paths[1])
    wanted = "give a table, or a directory of runs (each with a run.json)."
    assert str(refused.value) == f"{tmp_path / 'none.csv'} does not exist; {wanted}"
    with pytest.raises(DataError) as refused:
        correlate(tmp_path, paths[1])
    assert str(refused.value) == f"{tmp_path} contains no run; {wanted}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--baseline", "arena.csv"],
            "--baseline 'arena.csv' is not of the form NAME=FILE, such as arena=arena.csv.",
        ),
        (
            ["--baseline", "a=x.csv", "--baseline", "a=y.csv"],
            "--baseline has a twice; give each its own name.",
        ),
    ],
)
def test_baselines_have_names(words: list[str], said: str, tables: Callable[..., list[Path]], run: Command) -> None:
    status, _, err = run("correlate", *tables(OTHER, BEST_OF_N), *words)
    assert status == 2
    assert said in err


def test_a_baseline_is_compared_on_the_models_that_it_has(tables: Callable[..., list[Path]]) -> None:
    few = "\n".join(OTHER.splitlines()[:4])
    benchmark, downstream, baseline = tables(OTHER, BEST_OF_N, few)
    found = correlate(benchmark, downstream, baselines={"few": baseline})
    assert found.baselines["few"].n == 3
    assert found.baselines["few"].differences["spearman"].value == 0
    assert found.baselines["few"].models_needed is None
    assert any(
        warning.startswith("Baseline few: Left out, because only ")
        and warning.endswith("internlm2-1_8b, internlm2-7b, internlm2-20b.")
        for warning in found.warnings
    )
