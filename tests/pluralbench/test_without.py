"""A finished run's numbers without some items: those that a run on the other items has."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from chat_server import Reply, serve
from made_runs import decision, keep, run_of, scored
from persona_tables import knows, release, rows
from pluralbench.errors import RunError
from pluralbench.evaluation.without import read_item_list, without_items
from pluralbench.results import Run
from verbs import judge, judge_personas
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
Rows = list[dict[str, Any]]


def items(*ids: str, benchmark: str = "pairs", config: str = "p") -> pl.DataFrame:
    return pl.DataFrame([{"benchmark": benchmark, "config": config, "id": item} for item in ids])


def numbers(run: Run) -> list[tuple[Any, ...]]:
    """All numbers that need no texts."""
    return run.metrics.filter(pl.col("baseline").is_null()).rows()


def test_the_numbers_are_those_of_a_run_on_the_other_items(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    twelve = pairs(12)
    whole = scored("pairs", write(tmp_path / "whole" / "p.jsonl", twelve), tmp_path / "a")
    part = scored("pairs", write(tmp_path / "part" / "p.jsonl", twelve[2:7] + twelve[8:]), tmp_path / "b")
    without = without_items(whole, items("q0", "q1", "q7", "gone"))
    assert (without.removed, without.listed) == (3, 4)
    assert numbers(without.run) == numbers(part)
    assert without.run.headline == part.headline
    assert without.run.items_counted == 9
    assert whole.items_counted == 12


def test_subsets_of_which_no_item_is_left_are_named(run: Command, tmp_path: Path) -> None:
    entry = tmp_path / "mine.toml"
    entry.write_text(
        "title = 'Mine'\n[columns]\nsubset = 'subset'\n[sections]\nHard = { a = 1, b = 1 }\nEasy = { c = 1 }\n",
        encoding="utf-8",
    )
    rows = [
        {"id": f"{name}{n}", "prompt": f"{name}{n}?", "chosen": "yes", "rejected": "no" * n, "subset": name}
        for name in "abc"
        for n in (1, 2)
    ]
    data = write(tmp_path / "p.jsonl", rows)
    name = scored(str(entry), data, tmp_path / "run").config.benchmark.name
    write(tmp_path / "listed.jsonl", items("a1", "a2", "c1", benchmark=name).to_dicts())
    status, said, _ = run("report", tmp_path / "run", "--without", tmp_path / "listed.jsonl")
    assert status == 0
    note = (
        f"{name} without the items has no item left of Hard: 1 of 2 subsets (a); its numbers are of the other subsets."
    )
    assert note.replace(" ", "") in "".join(said.split())


def test_rankings_lose_all_rows_of_an_item(tmp_path: Path) -> None:
    rows = [
        {"id": f"r{number}", "prompt": f"{number}?", "responses": ["a", "bb" * number, "ccc"], "rank": [1, 2, 3]}
        for number in range(1, 6)
    ]
    whole = scored("rankings", write(tmp_path / "whole" / "p.jsonl", rows), tmp_path / "a")
    part = scored("rankings", write(tmp_path / "part" / "p.jsonl", rows[1:]), tmp_path / "b")
    without = without_items(whole, items("r1", benchmark="rankings"))
    assert (without.removed, without.run.items.height) == (1, 12)
    assert numbers(without.run) == numbers(part)


def test_replies_that_vote_keep_their_numbers(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    def script(body: dict[str, Any], seen: int) -> Reply:
        return Reply("[[A]]" if len(str(body["messages"])) % 3 or seen % 2 else "[[B]]")

    with serve(script) as server:
        options: dict[str, Any] = {"base_url": server.base_url, "samples": 3, "temperature": 0.7, "concurrency": 1}
        whole = judge(
            "judge-1", benchmark="pairs", data=write(tmp_path / "p.jsonl", pairs(8)), out=tmp_path / "run", **options
        )
    without = without_items(whole, items("q0", "q1"))
    kept = without.run
    assert kept.votes is not None
    assert kept.votes.replies["id"].n_unique() == 6
    assert kept.estimate("accuracy_of_votes", k=3).value == kept.headline.value
    counts = [one.estimate("accuracy_of_votes", k=1).n or 0 for one in (whole, kept)]
    assert counts == [8, 6]


def test_a_persona_judge_has_its_numbers_too(tmp_path: Path) -> None:
    def script(body: dict[str, Any], _: int) -> Reply:
        return Reply(f"[[{knows(body)}]] [[80]]")

    runs = []
    for name, number in (("whole", 6), ("part", 4)):
        data = release(tmp_path / name / "data", prism=rows("prism", number))
        with serve(script) as server:
            out = tmp_path / name / "run"
            runs.append(judge_personas("judge", data=data, out=out, base_url=server.base_url, concurrency=1))
    whole, part = runs
    gone = whole.items.join(part.items, on=["config", "id"], how="anti")["id"].to_list()
    without = without_items(whole, items(*gone, benchmark="persona-judge", config="prism"))
    assert without.removed == 2
    assert numbers(without.run) == numbers(part)


def test_items_of_other_benchmarks_and_configs_stay() -> None:
    run = run_of([decision(0), decision(1, "loss")])
    listed = pl.concat([items("q0", benchmark="pandalm", config="c"), items("q1", config="other")])
    without = without_items(run, listed)
    assert (without.removed, without.listed) == (0, 1)
    assert without.run.headline == run.headline


def test_without_all_items_there_is_no_number() -> None:
    without = without_items(run_of([decision(0)]), items("q0", config="c"))
    assert (without.removed, without.run.headline.value) == (1, None)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs on four items: the first wins all but the first, the other one loses all."""
    for name, outcomes in (("good", ["loss", "win", "win", "win"]), ("bad", ["loss"] * 4)):
        keep(
            run_of([decision(number, outcome) for number, outcome in enumerate(outcomes)], path=name, model=name),
            tmp_path / "runs" / name,
        )
    return tmp_path / "runs"


def test_the_report_shows_both_numbers(run: Command, runs: Path, tmp_path: Path) -> None:
    listed = write(tmp_path / "items.jsonl", items("q0", "q9", config="c").to_dicts())
    status, shown, _ = run("report", runs, "--without", listed)
    lines = [line.split() for line in shown.splitlines()]
    assert status == 0
    [good, bad] = [[*line[:2], *line[-2:]] for line in lines if line and line[0] in {"good", "bad"}][-2:]
    assert (good, bad) == (["good", "75.0", "+25.0", "1"], ["bad", "0.0", "+0.0", "1"])
    sentence = f"1 of the 2 items of pairs in {listed} are not in a run of it."
    assert "".join(sentence.split()) in "".join(shown.split()), "a long path is broken over lines"
    rows = {row["row"]: row for row in json.loads(run("report", runs, "--without", listed, "--format", "json")[1])}
    assert (rows["good"]["without"]["value"], rows["good"]["without"]["removed"]) == (1, 1)
    assert rows["good"]["overall"]["value"] == 0.75
    table = pl.read_csv(run("report", runs, "--without", listed, "--format", "csv")[1].encode())
    assert dict(table.select("row", "without.value").iter_rows())["good"] == 1


def test_a_number_that_is_gone_is_noted(run: Command, runs: Path, tmp_path: Path) -> None:
    listed = write(tmp_path / "items.jsonl", items("q0", "q1", "q2", "q3", config="c").to_dicts())
    _, shown, _ = run("report", runs, "--without", listed)
    assert "2 runs have no number without the items: no item of a part of the overall number is left." in " ".join(
        shown.split()
    )


def test_a_list_without_items_of_the_benchmark_is_noted(run: Command, runs: Path, tmp_path: Path) -> None:
    listed = write(tmp_path / "items.jsonl", items("q0", benchmark="chinese").to_dicts())
    status, shown, _ = run("report", runs, "--without", listed)
    assert status == 0
    assert "".join(f"Nothing in {listed} concerns pairs; it lists chinese.".split()) in "".join(shown.split())


def test_ids_are_texts_and_repetitions_count_once(tmp_path: Path) -> None:
    rows = [{"benchmark": "pairs", "config": "p", "id": number, "kind": kind} for number in (1, 2) for kind in "ab"]
    for name in ("items.jsonl", "items.parquet", "items.csv"):
        assert read_item_list(write(tmp_path / name, rows)).items["id"].to_list() == ["1", "2"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"benchmark": "pairs", "id": "q0"},
            "{path} has no column `config`; a list of items has the columns benchmark, config, id, as `pluralbench "
            "contamination --out` writes them.",
        ),
        (
            {"benchmark": "pairs", "config": None, "id": "q0"},
            "{path}: row 1 has no `config`; add it, or remove the row.",
        ),
    ],
)
def test_other_tables_are_refused(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "items.jsonl", [row])
    with pytest.raises(RunError) as caught:
        read_item_list(path)
    assert str(caught.value) == message.format(path=path)


def test_a_list_in_place_of_an_id_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "listed.jsonl", [{"benchmark": "pairs", "config": "p", "id": [1]}])
    with pytest.raises(RunError, match="has lists or objects in the column `id`"):
        read_item_list(path)
