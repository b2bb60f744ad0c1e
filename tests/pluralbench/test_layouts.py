"""A layout of items is one entry: how it is recognized, which columns it needs, and how rows become responses."""

import json
from pathlib import Path
from typing import Any

import pytest
import verbs
from pluralbench import DataConfig, find_benchmark, known_benchmarks
from pluralbench.data import layouts
from pluralbench.data.items import load_items
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.errors import BenchmarkError, DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.results.examples import examples, read_texts, selected
from written_tables import write


def test_a_benchmark_has_one_layout() -> None:
    units = {name: layouts.layout_of(benchmark).unit for name, benchmark in known_benchmarks().items()}
    right = "prompts with right and wrong responses"
    assert units["prompts"] == "prompts"
    assert units["persona-judge"] == "choices of a person"
    assert units["chinese"] == units["rankings"] == "rankings"
    assert units["pandalm"] == units["judgebench"] == units["pairs"] == "pairs"
    assert units["rm-bench"] == units["rmb-best-of-n"] == units["ppe-mmlu-pro"] == right


def test_right_and_wrong_responses_may_be_prompts_for_a_policy() -> None:
    loaded = load_benchmark("ppe-math", DataConfig(location="sample"), None, prompts_only=True)
    assert loaded.frame.height
    assert not any(map(len, loaded.frame["responses"]))


def test_items_that_another_command_reads_are_refused() -> None:
    with pytest.raises(BenchmarkError, match="run `pluralbench judge-personas`"):
        load_items("persona-judge", "sample")


def _rated(_: Any, source: SourceRows) -> dict[str, Any]:
    """Responses whose ratings are in one column, as an object by response."""
    columns = source.columns
    rated = source.each(lambda row: json.loads(row[str(columns.responses)]), columns.responses)
    return {
        "response_ids": [[*map(str, range(len(ratings)))] for ratings in rated],
        "responses": [[*ratings] for ratings in rated],
        "rank": [[-rating for rating in ratings.values()] for ratings in rated],
    }


RATED = Layout(
    unit="rated responses",
    fields=("responses",),
    fits=lambda _, columns: columns.responses == "ratings",
    responses=_rated,
    listed=True,
)


def test_a_new_layout_is_scored_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "LAYOUTS", (RATED, *layouts.LAYOUTS))
    rows = [
        {"id": "a", "prompt": "a quiet hobby", "ratings": json.dumps({"origami": 9, "drumming": 1})},
        {"id": "b", "prompt": "by the sea", "ratings": json.dumps({"tools": 2, "a walk": 8, "baking bread": 2})},
    ]
    path = write(tmp_path / "rated.jsonl", rows)
    run = verbs.score(
        verbs.by_length, benchmark="rankings", data=path, out=tmp_path / "run", columns=("responses=ratings",)
    )
    assert run.estimate("pooled_accuracy").n == 3
    assert run.count("wins") == 1
    shown = examples(run, selected(run), read_texts(run))
    assert [answer["text"] for answer in shown[1]["answers"]] == ["tools", "a walk", "baking bread"]
    with pytest.raises(DataError, match="has no column `ratings`; it has id"):
        verbs.load_items(
            find_benchmark("rankings", ["responses=ratings"]),
            str(write(tmp_path / "x.jsonl", [{"id": "a", "prompt": "?"}])),
        )
