"""Wherever items do not count towards a number, it is said beside it how many do, and which do not."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made_runs import Row, keep, run_of
from made_runs import decision as made
from pluralbench import find_benchmark
from pluralbench.errors import BenchmarkError
from pluralbench.publishing.model_card import eval_results
from pluralbench.reports.html.page import html_report
from pluralbench.reports.runs import details, overview
from pluralbench.results import Run
from pluralbench.results.checks import CheckResult, finding_lines
from pluralbench.results.finding import FoundRuns
from pluralbench.results.run_files import METRICS_FILE
from rendered import render
from written_tables import write

decision = partial(made, config="default")
SECTIONED = [decision(n, subset="hep-go") for n in range(3)]
CASES: dict[str, tuple[str, Sequence[Row], str]] = {
    "ties of labels": ("pairs", [decision(0), *(decision(n, "equal") for n in range(1, 805))], "1 of 805 items"),
    "dropped": ("personalized", [decision(0), decision(1, "tie"), decision(2, "dropped")], "2 of 3 items"),
    "no section": (
        "reward-bench",
        [*SECTIONED, *(decision(n, subset="new") for n in range(3, 9)), decision(9)],
        "3 of 10 items",
    ),
    "all count": ("pairs", [decision(0), decision(1, "invalid")], "2 items"),
    "a config apart": ("multilingual", [*SECTIONED, decision(1, config="translation")], "3 items"),
    "no pair": ("chinese", [decision(0, subset="a"), decision(1, "equal", subset="a")], "1 of 2 items"),
}


@pytest.mark.parametrize(
    ("benchmark", "rows", "said"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.heavy] * (name not in {"no section", "no pair"}))
        for name, case in CASES.items()
    ],
)
def test_the_headline_says_of_how_many_items_it_is(
    benchmark: str, rows: Sequence[Row], said: str, tmp_path: Path
) -> None:
    run = keep(run_of(rows, benchmark, path=tmp_path / "run"))
    title = run.config.benchmark.title
    assert f"**{title}, {said}**" in str(render([run], "markdown"))
    assert f"\\caption{{{title}, {said}.}}\n" in str(render([run], "latex"))
    assert f"{title}, {said} ({run.path})" in details([run]).tables[-1].title
    assert f"on {title}, {said}, " in next(finding_lines(run, CheckResult("consistent", [])))
    assert f"{title}, {said}" in html_report(FoundRuns([run]))[0]
    counted, there = run.items_counted, run.items_total
    [row, *_] = json.loads(str(render([run], "json")))
    assert (row["items_counted"], row["items"]) == (counted, there)
    rows_of = json.loads((run.path / METRICS_FILE).read_text(encoding="utf-8"))["rows"]
    values = {row["metric"]: row.get("value") for row in rows_of if "config" not in row}
    assert (values["items_counted"], values["items"]) == (counted, there)
    for result in eval_results(run)[:1]:
        assert result.metric_args is not None
        assert (result.metric_args["items"], result.metric_args["of_items"]) == (counted, there)


def test_a_comparison_says_how_many_decisions_count_and_counts_these_alone(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    rows = CASES["no section"][1]
    for name, outcome in (("a", "win"), ("b", "loss")):
        keep(run_of([row | {"outcome": outcome} for row in rows], "reward-bench"), tmp_path / name)
    status, said, _ = run("compare", tmp_path / "a", tmp_path / "b")
    assert status == 0
    assert ": 10 decisions on 10 " in said
    assert ", over 3 of these\n" in said
    assert "Decisions that only A gets right: 3; only B: 0.\n" in said


def test_runs_of_a_table_that_count_other_items_are_told_apart() -> None:
    runs = [run_of([decision(0), decision(1, what)], model=what, path=f"runs/{what}") for what in ("win", "dropped")]
    text = str(render(runs, "markdown"))
    assert "**Pairs, 1 to 2 of 2 items**" in text
    assert "- Counted in the overall number: dropped: 1 of 2 items." in text


def test_subsets_without_a_section_and_entries_without_an_item_are_named() -> None:
    run = run_of(CASES["no section"][1], "reward-bench")
    text = str(render([run], "markdown"))
    assert "- Subsets outside all sections, not in the overall number: new (6 items), no subset (1 item)." in text
    assert (
        "- Subsets of sections that have no items: alpacaeval-easy, alpacaeval-length, alpacaeval-hard, mt-bench-easy, "
        "mt-bench-med, 17 more." in text
    )


def test_a_section_of_ones_own_that_weighs_what_is_not_there_is_refused(
    score: Callable[..., Run], pairs: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    data = write(tmp_path / "p.jsonl", [*pairs(4, kind="cooking"), *pairs(4, seed=1, kind="baking")][:4])
    path = tmp_path / "own.toml"
    path.write_text(
        'title = "Own"\n[columns]\nsubset = "kind"\n[sections.All]\ncokking = 2\nbaking = 1\n', encoding="utf-8"
    )
    with pytest.raises(BenchmarkError) as caught:
        score(str(path), data)
    assert str(caught.value) == (
        f"{path}: no item has the subset cokking of the section All; did you mean `cooking`? the items' subsets: "
        "cooking."
    )
    # Of part of the items nothing follows.
    assert score(str(path), data, limit=2).headline.value is not None


def test_a_section_says_of_how_many_decisions_it_is() -> None:
    """In a language, over languages, and of a config whose subsets are not all in a section."""
    subsets = [name for weights in find_benchmark("multilingual").sections.values() for name in weights]
    rows = [
        decision(10 * place + n, config=config, subset=subset)
        for config in ("eng_Latn", "deu_Latn", "spa_Latn")
        for place, subset in enumerate([*subsets, "new"])
        for n in range(place % 3 + 1)
    ]
    run = run_of(rows, "multilingual")
    for section, weights in find_benchmark("multilingual").sections.items():
        own = sum(row["subset"] in weights and row["config"] == "deu_Latn" for row in rows)
        assert run.estimate("accuracy", config="deu_Latn", section=section).n == own
        assert run.estimate("accuracy", section=section).n == 2 * own
    counted = sum(row["subset"] != "new" and row["config"] == "deu_Latn" for row in rows)
    assert (run.estimate("accuracy", config="deu_Latn").n, run.headline.n) == (counted, 2 * counted)


def test_a_config_that_does_not_count_has_its_number_in_a_note() -> None:
    subsets = ["alpacaeval-easy", "mt-bench-hard", "donotanswer", "hep-go"]  # one of each section
    rows = [
        decision(n, "loss" if n < 3 else "win", config="eng_Latn", subset=subset)
        for n, subset in enumerate(sorted(subsets * 3))
    ]
    [note] = [text for text in overview([run_of(rows, "multilingual")]).notes if text.startswith("No overall number")]
    assert note.startswith("No overall number, because it does not include: eng_Latn (accuracy 75.0 [")
    assert note.endswith("], 12 items).")
