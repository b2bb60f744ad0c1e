"""What runs found, a row a model: for the terminal, Markdown, LaTeX, JSON and CSV."""

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from chat_server import serve
from downstream_runs import MODELS, World, sampled
from figure_runs import with_references
from made_runs import changed, decision, for_persons, keep, run_of
from pluralbench import compare, find_benchmark
from pluralbench.errors import EvaluationError
from pluralbench.metrics.frame import NUMBERS
from pluralbench.reports import items
from pluralbench.reports.comparison import comparison_notes
from pluralbench.reports.runs import details, report_frame
from pluralbench.reports.tables import Report
from pluralbench.reports.writing import format_report
from pluralbench.results import Run
from pluralbench.results.record import CostRecord
from pluralbench_calls import Price
from rendered import render
from rich.console import Console

Command = Callable[..., tuple[int, str, str]]
SECTIONS = find_benchmark("multilingual").sections


def a_run(name: str, right: int, *, benchmark: str = "pairs", of: int = 20, path: Path | None = None) -> Run:
    """A run of a model of this name, right in so many of the decisions of two configs."""
    rows = [decision(n, "win" if n < right else "tie", config=config) for config in ("fr", "zh") for n in range(of)]
    return run_of(rows, benchmark, model=name, path=path or Path("runs") / name.replace("/", "-"))


@pytest.fixture
def runs() -> list[Run]:
    """Three runs, the worst one first."""
    return [a_run("org/constant", 0), a_run("org/fair", 9), a_run("org/best", 14)]


def text_of(runs: Sequence[Run], width: int = 80, **options: Any) -> str:
    """What the terminal shows, which is as wide as it likes."""
    console = Console(width=300, file=io.StringIO(), force_terminal=False)
    console.print(render(runs, "table", width=width, **options))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def rows_of(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What programs get."""
    rows: list[dict[str, Any]] = json.loads(str(render(runs, "json")))
    return rows


def test_the_frame_has_every_number_of_every_run_the_best_one_first(runs: list[Run]) -> None:
    frame = report_frame(runs)
    about = ["run", "model", "kind", "benchmark", "profile", "setting", "variables"]
    assert frame.columns == [*about, "metric", "config", *NUMBERS]
    assert frame["model"].unique(maintain_order=True).to_list() == ["org/best", "org/fair", "org/constant"]
    assert frame.filter(metric="overall")["value"].to_list() == [0.7, 0.45, 0.0]
    own = frame.filter(run="runs/org-fair").drop(about)
    assert own.equals(runs[1].metrics.select(own.columns))


def test_each_form_has_the_same_rows_and_numbers(runs: list[Run]) -> None:
    given = [with_references(run) for run in runs]
    names = ["best", "fair", "constant", "coin", "longer answer", "shorter answer"]
    rows = rows_of(given)
    assert [row["row"] for row in rows] == names
    baselines = [given[2].estimate("overall", baseline=name).value for name in ("coin", "longer", "shorter")]
    assert [row["overall"]["value"] for row in rows[3:]] == baselines
    frame = pl.read_csv(io.StringIO(str(render(given, "csv"))))
    assert frame["row"].to_list() == names
    head = given[2].headline
    assert rows[0]["overall"] == {"value": head.value, "low": head.low, "high": head.high} | {
        "n": head.n, "clusters": head.clusters, "interval": head.method,
    }  # fmt: skip
    for field in ("value", "low", "high", "n", "clusters"):
        assert frame[f"overall.{field}"][0] == pytest.approx(rows[0]["overall"][field])
        assert frame[f"parts.zh.{field}"][1] == pytest.approx(rows[1]["parts"]["zh"][field])
    told = [f"{100 * row['parts']['fr']['value']:.1f}" for row in rows]
    low, high = f"{100 * (head.low or 0):.1f}", f"{100 * (head.high or 0):.1f}"
    terminal, markdown, latex = text_of(given), str(render(given, "markdown")), str(render(given, "latex"))
    for text, line in ((terminal, r"{}.*{}"), (markdown, r"\| {} .*\| {} *\|"), (latex, r" {} .*& +{} +\\\\")):
        assert f"70.0 [{low}, {high}]" in text
        found = [re.search(f"(?m)^{line.format(name, number)}", text) for name, number in zip(names, told, strict=True)]
        assert all(found), text
        places = [match.start() for match in found if match]
        assert places == sorted(places)
    assert {line.count("|") for line in markdown.splitlines() if line.startswith("|")} == {5}
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\begin{tabular}{lrrr}"):
        assert rule in latex


def test_every_number_is_in_the_long_frame_in_detail(runs: list[Run]) -> None:
    frame = report_frame(runs)
    assert json.loads(str(render(runs, "json", detail=True))) == frame.to_dicts()
    parsed = pl.read_csv(io.StringIO(str(render(runs, "csv", detail=True))))
    assert parsed.columns == frame.columns
    assert parsed["value"].to_list() == pytest.approx(frame["value"].to_list(), nan_ok=True)
    text = text_of([run_of([decision(0), decision(1, "dropped"), decision(2, "invalid")])], detail=True)
    assert re.search(r"accuracy +n +invalid +dropped\n", text), "counts that are all nothing are left out"


def test_parts_are_sections_and_what_is_missing_is_no_number() -> None:
    run = run_of([decision(n, subset="hep-go", config="default") for n in range(6)], "reward-bench")
    (row,) = rows_of([run])
    assert list(row["parts"]) == [*find_benchmark("reward-bench").sections]
    assert [row["overall"]["value"], row["parts"]["Reasoning"]["value"]] == [None, 1.0]
    line = next(line for line in text_of([run]).splitlines() if line.startswith("m "))
    assert line.split() == ["m", "–", "–", "–", "–", "100.0"]
    assert "default: Reasoning" in text_of([run], detail=True)


def test_one_short_definition_stands_for_itself() -> None:
    def shown(definitions: dict[str, str]) -> str:
        console = Console(width=80, file=io.StringIO(), force_terminal=False)
        console.print(format_report(Report(definitions=definitions), "table", 80))
        return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]

    assert shown({"gain": "second minus first."}) == "Gain: second minus first."
    where = "Defined by `pluralbench report RUN --notes`:"
    assert shown({"gain": "second minus first, " * 5}) == f"{where} gain."
    assert shown({"gain": "more.", "loss": "less."}) == f"{where} gain, loss."
    assert shown({}) == ""


def test_an_interval_over_few_clusters_is_marked_and_explained() -> None:
    few = run_of([decision(n, cluster=f"u{n % 4}") for n in range(8)], model="few")
    more = run_of([decision(n, cluster=f"u{n % 9}") for n in range(18)], model="more")
    for text in (text_of([few, more]), text_of([few, more], detail=True)):
        assert len(re.findall(r"100\.0 \[[\d.]+, 100\.0\]†", text)) >= 2
        assert "† Wide interval: only 4 to 9 prompts or users." in text
    assert "† Wide interval: only 4 prompts or users." in text_of([few])
    assert "†" not in text_of([a_run("fair", 9)])


def test_runs_on_other_items_stand_apart_with_their_own_reference_points() -> None:
    whole = with_references(a_run("a", 9))
    part = with_references(changed(a_run("b", 5, of=10), data__limit=10))
    text = text_of([part, whole])
    assert text.index("Pairs, 40 items") < text.index("Pairs, limit 10 per config, 20 other items")
    assert text.count("longer answer") == 3, "below each table, and in a note"
    assert "Tables of one benchmark on other items cannot be compared" in text
    assert "other items" not in text_of([whole, with_references(a_run("c", 3))])
    texts = run_of(whole.items.with_columns(digest=pl.lit("e")), model="a", path="runs/z")
    rows = rows_of([whole, changed(texts, data__digest="another")])
    assert [rows[0]["sheet"], rows[-1]["sheet"]] == [
        "Pairs, content d, 40 items",
        "Pairs, content another, 40 other items",
    ]


def test_runs_by_other_rules_stand_apart() -> None:
    rows = [decision(n, "win" if n % 3 else "loss", subset="a") for n in range(9)]
    pair = [run_of(rows, "chinese", path="runs/a"), run_of(rows, "chinese", path="runs/b", legacy=True)]
    text = text_of(pair)
    for told in ("CheemsBench, c, its own rules, 9 items", "CheemsBench, c, legacy rules, 9 items"):
        assert told in " ".join(text.split())


def test_runs_of_one_model_are_told_apart_by_what_differs() -> None:
    def rows(runs: Sequence[Run]) -> list[str]:
        return [row["row"] for row in rows_of(runs)]

    first, second = a_run("m", 5, path=Path("runs/a")), a_run("m", 3, path=Path("runs/b"))
    assert rows([first, second]) == ["m (a)", "m (b)"]
    assert rows([first, changed(second, prompt__profile="raw")]) == ["m (none)", "m (raw)"]
    assert "profile in brackets" in text_of([first, changed(second, prompt__profile="raw")])
    exact = [changed(one, scoring__mode=mode) for one, mode in ((first, "fast"), (second, "exact"))]
    assert rows(exact) == ["m (mode fast)", "m (mode exact)"]
    assert rows([a_run("x/m", 5), a_run("y/m", 3)]) == ["x/m", "y/m"]
    assert rows([a_run("x/m", 5), a_run("y/n", 3)]) == ["m", "n"]
    nested = [a_run("m", 5, path=Path("x/run")), a_run("m", 3, path=Path("y/run"))]
    assert rows(nested) == ["m (x/run)", "m (y/run)"]


@pytest.fixture(scope="module")
def ten_runs() -> list[Run]:
    """On four benchmarks, with names and parts as long as real ones are."""
    names = ["Skywork-Reward-V2-Llama-3.2-1B", "Skywork-Reward-V2-Qwen3-4B", "ArmoRM-Llama3-8B-v0.1"]
    subsets = [subset for section in SECTIONS.values() for subset in list(section)[:2]]
    outcomes = ["win", "loss", "tie", "win", "invalid", "win", "dropped"]

    def made(configs: Sequence[str], benchmark: str, models: Sequence[str]) -> list[Run]:
        rows = [
            decision(n, outcomes[(n * n + len(config)) % 7], config=config, subset=subsets[n % 8])
            for config in configs
            for n in range(48)
        ]
        run = changed(with_references(run_of(rows, benchmark)), cost=CostRecord(seconds=312.4))
        return [
            changed(replace(run, path=Path(f"runs/{benchmark}-{n}")), model__name=f"org/{name}")
            for n, name in enumerate(models)
        ]

    domains = ["Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture"]
    languages = ["eng_Latn", "spa_Latn", "arb_Arab", "zho_Hans", "zho_Hant", "hin_Deva"]
    took = {"calls": 1200, "prompt_tokens": 900_000, "completion_tokens": 12_345}
    price = Price(input=0.25, output=2)
    found = [*made(domains, "personalized", names), *made(languages, "multilingual", names)]
    found += made(["open", "human"], "chinese", names[:2])
    tasks = ["empathic_conversations", "opinion_qa", "personal_reddit", "prism"]
    for run, variables in zip(made(tasks, "pairs", ["gpt-5-mini"] * 2), ("all", "none"), strict=True):
        record = run.config.benchmark.model_copy(update={"name": "persona-judge", "title": "Persona judge"})
        cost = CostRecord(seconds=61, dollars=0.25, price=price)
        found.append(for_persons(changed(run, benchmark=record), variables=variables, cost=cost, **took))
    return found


def test_ten_runs_on_four_benchmarks_fit_a_page(ten_runs: list[Run]) -> None:
    text = text_of(ten_runs)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 80
    assert text.count("longer answer") == 5
    for part in ("gpt-5-mini (none)", "against", "kappa", "Reasoning", "Entertainment", "human:", "accuracy"):
        assert part in text
    assert "$0.50 at 0.25/2 per million, 122 s in 2 runs" in " ".join(text.split())
    for sheet in {row["sheet"] for row in rows_of(ten_runs)}:
        assert sheet.split(",")[0] in " ".join(text.split())


def test_wide_tables_have_every_interval(ten_runs: list[Run]) -> None:
    narrow, wide = text_of(ten_runs), text_of(ten_runs, wide=True)
    assert max(map(len, wide.splitlines())) > 100
    assert wide.count("[") > 3 * narrow.count("[")
    assert "Skywork-Reward-V2-Llama-3.2-1B " in wide


def test_the_notes_say_once_what_runs_share_and_whose_is_what_they_do_not() -> None:
    rows = [decision(n, "invalid" if n < 2 else "win") for n in range(5)]
    alike = [run_of(rows, model=name, path=f"runs/{name}") for name in "ab"]
    assert "Counted as wrong: 2 invalid in each run." in text_of(alike)
    other = run_of([decision(0, "tie"), *rows[1:3], decision(3, "dropped"), decision(4, truncated=True)], model="c")
    text = " ".join(text_of([*alike, other]).split())
    assert "Counted as wrong: a, b: 2 invalid; c: 1 tie, 1 invalid." in text
    assert "Excluded from accuracy: c: 1 item too long." in text
    assert "Truncated to fit the model: c: 1 item." in text
    assert text.count("Overall: mean over all items.") == 1
    assert details([other]).tables[0].title == "c, Pairs, c, 4 of 5 items (runs/m)"


def test_margins_within_rounding_error_are_counted_beside_each_number() -> None:
    many, few = (
        changed(a_run(name, 12), tolerance=0.5, decisions_within_tolerance=within)
        for name, within in (("many", 5), ("few", 4))
    )
    text = text_of([many, few], width=200)
    assert "Pairs, 40 items; many: 5 of 40 margins within rounding error\n" in text
    note = "Could come out otherwise on another machine or in another mode: "
    assert f"{note}many: 5 of 40 margins within rounding error (0.5); few: 4 of 40" in " ".join(text.split())
    assert ["5 of 40 margins" in repr(many), "4 of 40 margins" in repr(few)] == [True, False]
    assert items.overview(few)[-1].endswith("; 4 of 40 margins within rounding error")
    found = compare(many, few)
    assert found.sentence.endswith("many: 5 of 40 margins within rounding error.")
    expected = "A 5 of 40 margins within rounding error; B 4 of 40 margins within rounding error."
    assert f"{note}{expected}" in comparison_notes(found)


def test_what_a_run_took_is_told_and_an_older_run_says_nothing() -> None:
    run = a_run("m", 3)
    assert "Took" not in text_of([run])
    assert "\nCost: under 1 s." in text_of([changed(run, cost=CostRecord(seconds=0.2512))])
    assert "Cost: 1,234 s." in text_of([changed(run, cost=CostRecord(seconds=1234))], detail=True)
    (row,) = rows_of([changed(run, cost=CostRecord(seconds=0.25))])
    names = ["seconds", "calls", "prompt_tokens", "completion_tokens", "cached_tokens", "dollars"]
    assert row["cost"] == dict.fromkeys(names) | {"seconds": 0.25}
    usage = {"calls": 4, "prompt_tokens": 1_500, "completion_tokens": 100}
    judged, cached = (for_persons(run, **usage, **counts) for counts in ({}, {"cached_tokens": 600}))
    assert "Cost: 4 calls, 1,600 tokens." in text_of([judged])
    assert "Cost: 4 calls, 1,600 tokens (40% of the prompts cached by the server)." in " ".join(
        text_of([cached]).split()
    )
    assert rows_of([cached])[0]["cost"]["cached_tokens"] == 600


def test_names_are_shown_as_they_are_in_every_form(run: Command, tmp_path: Path) -> None:
    rows = [decision(0, config="a|b [bold]"), decision(1, config="50%_of&{c}")]
    made = keep(run_of(rows, "personalized", model="[x] \u05d0\u05d1\n$m$"), tmp_path / "run")
    lines = [line for line in str(render([made], "markdown")).splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    said = run("report", made.path)[1]
    assert "a|b" in said
    assert "[bold]" in said
    assert "\u2068[x] \u05d0\u05d1 $m$\u2069" in said, "a name read from the right leaves the numbers where they are"
    latex = str(render([made], "latex"))
    assert r"50\%\_of\&\{c\}" in latex
    assert re.search(r"\\midrule\n \{\}\[x\] \S+ \\\$m\\\$ +& ", latex), "a bracket after a row's end is an argument"


def test_the_command_prints_each_form_and_writes_a_file(runs: list[Run], run: Command, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    paths = [keep(one, folder / "deep" / one.path.name).path for one in runs]
    (folder / "half.work").mkdir()
    status, said, _ = run("report", folder)
    assert status == 0
    assert re.findall(r"(?m)^(best|fair|constant) ", said) == ["best", "fair", "constant"]
    assert said == run("report", *paths, folder / "half.work", paths[0])[1], "each run once"
    assert len(json.loads(run("report", folder, "--format", "json")[1])) == 3
    status, said, _ = run("report", folder, "--format", "csv", "--detail", "--out", tmp_path / "t.csv")
    assert (status, said.strip()) == (0, f"Wrote {tmp_path / 't.csv'}")
    assert pl.read_csv(tmp_path / "t.csv").height == report_frame(runs).height
    run("report", folder, "--out", tmp_path / "t.md")
    assert (tmp_path / "t.md").read_text(encoding="utf-8").startswith("**Pairs, 40 items**\n\n| model ")
    for out in (tmp_path / "nowhere" / "t.md", tmp_path):
        status, _, error = run("report", paths[0], "--out", out)
        assert (status, error.count("\n")) == (2, 1)


def test_directories_of_best_of_n_have_a_table_of_their_own(run: Command, sample: Path, tmp_path: Path) -> None:
    with serve(World()) as server:
        found = sampled(server, sample, tmp_path / "runs" / "best", MODELS, limit=2, n=4, k=())
    line = rf"{found.path}:Thebestof4answersofpolicyinsteadofone"
    status, said, error = run("report", tmp_path / "runs")
    assert (status, error) == (0, "")
    assert re.search(line, "".join(said.split())), "lines break where the path has it"
    # Table 5 of Personalized RewardBench: a row a reward model, a column a domain.
    lines = run("report", tmp_path / "runs", "--format", "markdown")[1].splitlines()
    assert (
        lines[0] == "**Personalized RewardBench (personalized-rewardbench): best of 4 answers of policy, rubric score**"
    )
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in lines if row.startswith("|")]
    assert rows[0] == ["reward model", "Art", "Lifestyle", "Society", "Mean", "Rank"]
    assert [row[0] for row in rows[2:]] == ["Base", *MODELS]
    configs = [*found.config.data.rows]
    values: dict[str, float] = {}
    for name, *cells in rows[2:]:
        model, k = (None, None) if name == "Base" else (name, 4)
        numbers = [found.estimate("outcome", model=model, k=k, config=config) for config in (*configs, None)]
        wanted = [one.value for one in numbers if one.value is not None]
        assert [float(cell.split()[0]) for cell in cells[:-1]] == pytest.approx(wanted, abs=1e-4)
        values[name] = wanted[-1]
    order = sorted(MODELS, key=lambda name: -values[name])
    assert {row[0]: row[-1] for row in rows[2:]} == {"Base": "–"} | {
        name: str(place) for place, name in enumerate(order, 1)
    }
    assert "\\toprule\n reward model" in run("report", tmp_path / "runs", "--format", "latex")[1]
    frame = pl.read_csv(io.StringIO(run("report", tmp_path / "runs", "--format", "csv")[1]))
    assert frame.columns == ["run", "metric", "config", "model", "k", *NUMBERS]
    assert frame.height == found.metrics.height
    keep(a_run("m", 3), tmp_path / "runs" / "m")
    said = run("report", tmp_path / "runs")[1]
    assert re.search(line, "".join(said.split()))
    assert re.search(r"(?m)^m +15\.0 ", said)
    assert len(json.loads(run("report", tmp_path / "runs", "--format", "json")[1])) == 1


def test_no_run_and_a_run_that_cannot_be_read_are_one_sentence(run: Command, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="no runs to report"):
        render([], "table")
    made = keep(run_of([decision(0)]), tmp_path / "run")
    (made.path / "run.json").write_text("[]", encoding="utf-8")
    empty, begun = tmp_path / "empty", tmp_path / "begun"
    empty.mkdir()
    (begun / "a.work").mkdir(parents=True)
    for path, part in (
        (made.path, "has no schema_version"),
        (tmp_path / "none", f"The directory {tmp_path / 'none'} does not exist."),
        (empty, f"{empty} contains no run."),
        (begun, f"{begun} contains no finished run; to resume the unfinished ones, run their commands again."),
        (begun / "a", f"{begun / 'a'} is not finished; to resume the run, run its command again."),
        (made.path / "items.parquet", "is a file; give a run directory, or a directory that contains some."),
    ):
        status, _, error = run("report", path)
        assert (status, error.count("\n")) == (2, 1)
        assert part in error
