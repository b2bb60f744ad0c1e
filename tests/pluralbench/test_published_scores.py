"""Per-item scores that others have published are read as they are, whatever their file's shape."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench.data.published_scores import ItemScores, read_published
from pluralbench.errors import DataError
from written_tables import SUFFIXES, write

Row = dict[str, Any]
Pairs = dict[str, tuple[float, float]]
NUMBERS = st.floats(-1e6, 1e6).map(lambda value: value + 0.0)
PAIRS = st.dictionaries(
    st.text("abcאבג茶0123456789-:", min_size=1, max_size=8), st.tuples(NUMBERS, NUMBERS), min_size=1
)


def right_first(read: ItemScores) -> Pairs:
    """The scores of the right and the wrong response, by id."""
    found = {}
    for item, ranks, scores in read.items.select("id", "rank", "scores").iter_rows():
        of = dict(zip(ranks, scores, strict=True))
        found[item] = (of[1], of[2])
    return found


def sides(pairs: Pairs) -> list[Row]:
    return [
        {"id": item, "subset": "donotanswer", "scores_chosen": a, "scores_rejected": b, "results": int(a > b)}
        for item, (a, b) in pairs.items()
    ]


def listed(pairs: Pairs) -> list[Row]:
    return [{"id": item, "subset": "Math", "scores": [[a], [b]], "results": 0.5} for item, (a, b) in pairs.items()]


def letters(pairs: Pairs) -> list[Row]:
    labels = ["A>B" if place % 2 else "B>A" for place in range(len(pairs))]
    of = (
        (item, label, *(pair if label == "A>B" else pair[::-1]))
        for (item, pair), label in zip(pairs.items(), labels, strict=True)
    )
    return [
        {"pair_id": item, "source": "mmlu-pro", "label": label, "score_A": a, "score_B": b} for item, label, a, b in of
    ]


def games(pairs: Pairs) -> list[Row]:
    rows = []
    for row in letters(pairs):
        decision = "A>B" if row["score_A"] > row["score_B"] else "B>A"
        judgment = {"judge_model": "m", "scores": [row.pop("score_A"), row.pop("score_B")]}
        rows.append(row | {"judgments": [{"judgment": judgment, "decision": decision}]})
    return rows


def responses(pairs: Pairs) -> list[Row]:
    return [
        {"id": item, "response": str(rank), "rank": rank, "score": score}
        for item, pair in pairs.items()
        for rank, score in ((2, pair[1]), (1, pair[0]))
    ]


SHAPES: list[tuple[Callable[[Pairs], list[Row]], str]] = [
    (sides, "scores of chosen and rejected responses"),
    (listed, "reward-bench's scores, version 2"),
    (letters, "scores of responses A and B"),
    (games, "JudgeBench's outputs"),
    (responses, "a table with a row per response"),
]


@settings(max_examples=15)
@pytest.mark.parametrize(("shape", "name"), SHAPES, ids=[shape.__name__ for shape, _ in SHAPES])
@given(pairs=PAIRS)
def test_scores_written_in_a_published_shape_are_read_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, shape: Callable[[Pairs], list[Row]], name: str, pairs: Pairs
) -> None:
    read = read_published(str(write(tmp_path_factory.mktemp("read") / "scores.jsonl", shape(pairs))))
    assert read.shape == name
    assert right_first(read) == pairs


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", [sides, letters, responses])
def test_every_format_has_the_same_scores(tmp_path: Path, suffix: str, shape: Callable[[Pairs], list[Row]]) -> None:
    pairs = {"a": (1.5, -2.0), "b": (0.25, 0.25)}
    assert right_first(read_published(str(write(tmp_path / f"s{suffix}", shape(pairs))))) == pairs


def test_an_object_of_columns_is_read_as_reward_bench_writes_it(tmp_path: Path) -> None:
    rows = sides({"30": (1.0, 2.0), "31": (3.0, 0.5)})
    columns: Row = {name: [row[name] for row in rows] for name in rows[0]} | {"model": "org/rm", "chat_template": None}
    (tmp_path / "rm.json").write_text(json.dumps(columns, indent=4, sort_keys=True), encoding="utf-8")
    read = read_published(str(tmp_path / "rm.json"), where=["model=org/rm"])
    assert right_first(read) == {"30": (1.0, 2.0), "31": (3.0, 0.5)}
    assert read.items["stated"].to_list() == [0.0, 1.0]
    assert read.benchmark.title == "RewardBench"


def test_ties_have_as_many_right_responses_as_the_file_names(tmp_path: Path) -> None:
    rows = [
        {"id": "ref:1", "subset": "Ties", "scores": [3, 1, 2], "results": 1, "num_correct": 1},
        {"id": "tied:1", "subset": "Ties", "scores": [3, 1, 2], "results": 1, "num_correct": 2},
        {"id": "f", "subset": "Factuality", "scores": [3, 1, 2, 0], "results": 1, "num_correct": 1},
    ]
    path = tmp_path / "v2.jsonl"
    read = read_published(str(write(path, rows)))
    assert read.items["rank"].to_list() == [[1, 2, 2], [1, 1, 2], [1, 2, 2, 2]]
    without = [{name: value for name, value in row.items() if name != "num_correct"} for row in rows]
    assert read_published(str(write(path, without))).items["rank"].to_list() == [None, None, [1, 2, 2, 2]]


def test_lists_of_chosen_and_rejected_scores_are_those_of_rm_bench(tmp_path: Path) -> None:
    rows = [{"id": "1", "domain": "chat", "score_chosen": [1, 2, 3], "score_rejected": [0, 2.5, 1]}]
    read = read_published(str(write(tmp_path / "rm.jsonl", rows)), columns=["id=domain+id", "subset=domain"])
    [item] = read.items.select("id", "response_ids", "rank", "scores").rows(named=True)
    assert (item["id"], item["rank"], item["scores"]) == ("chat/1", [1, 1, 1, 2, 2, 2], [1, 2, 3, 0, 2.5, 1])
    assert item["response_ids"] == ["chosen 0", "chosen 1", "chosen 2", "rejected 0", "rejected 1", "rejected 2"]


@pytest.mark.parametrize(
    ("label", "decisions", "outcome"),
    [
        ("A>B", ["A>B", "B>A"], "win"),
        ("A>B", ["A>B", "A=B"], "win"),
        ("A>B", ["A>B", "A>B"], "tie"),
        ("B>A", ["A>>B", "A=B"], "loss"),
        ("B>A", [None, "A>B"], "win"),
        ("B>A", [None, None], "invalid"),
    ],
)
def test_a_judge_votes_over_both_orders_the_second_of_which_is_swapped(
    tmp_path: Path, label: str, decisions: Sequence[str | None], outcome: str
) -> None:
    text = [{"pair_id": "p", "label": label, "decision_1": decisions[0], "decision_2": decisions[1]}]
    games = [
        {
            "pair_id": "p",
            "label": label,
            "judgments": [{"judgment": {"response": "x"}, "decision": one} for one in decisions],
        }
    ]
    for rows in (text, games):
        assert read_published(str(write(tmp_path / "v.jsonl", rows))).items["outcome"].to_list() == [outcome]


def test_a_missing_score_is_no_number_and_no_error(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b", "c"], "score": [math.nan, None, math.inf]})
    frame.write_parquet(tmp_path / "s.parquet")
    read = read_published(str(tmp_path / "s.parquet"))
    assert all(math.isnan(score) for [score] in read.items["scores"].to_list())
    assert read.items["rank"].to_list() == [[1]] * 3


KNOWN = (
    "judgments, label; score_A, score_B, label; score_chosen, score_rejected; response, score; scores; score; "
    "decision_1, label; outcome"
)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [{"id": "a", "logit": 1}],
            f" has none of the known shapes: its columns are id, logit. Needed are id and one of: {KNOWN}; name "
            "columns with `columns=...`.",
        ),
        ([{"score": 1}], None),
        ([{"id": "a", "score": "high"}], ", id a: `score` is not a number: 'high'."),
        ([{"id": "a", "score_chosen": 1, "score_rejected": "x"}], ", id a: `score_rejected` is not a number: 'x'."),
        ([{"id": None, "score": 1}, {"id": "b", "score": 2}], ": row 1 has no id; add it or remove the row."),
        ([{"id": "a", "score": 1}] * 2, " has 2 rows for 1 ids (such as a); keep one row for each."),
        (
            [{"id": "a", "label": "C", "score_A": 1, "score_B": 2}],
            ", id a: the label 'C' is unknown; known are A>B, A>>B, A, 1, model_a (the first response is better) or "
            "B>A, B>>A, B, 2, model_b (the second is) or A=B (a tie).",
        ),
        (
            [{"id": "a", "label": "A>B", "decision_1": "[[A]]"}],
            ", id a: the decision '[[A]]' is unknown; known are A>B, A>>B, A, 1, model_a (the first response is "
            "better) or B>A, B>>A, B, 2, model_b (the second is) or A=B (a tie).",
        ),
        ([{"id": "a", "label": "A>B", "judgments": 3}], ", id a: `judgments` is not a list of games: 3."),
        ([{"id": "a", "outcome": "won"}], ", id a: the outcome 'won' is none of win, loss, tie and invalid."),
    ],
)
def test_a_file_of_another_shape_is_refused_by_name(tmp_path: Path, rows: list[Row], problem: str | None) -> None:
    path = write(tmp_path / "s.jsonl", rows)
    with pytest.raises(DataError) as caught:
        read_published(str(path))
    assert str(caught.value) == f"{path}{problem}" or (
        problem is None and "none of the known shapes" in str(caught.value)
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            {"where": ["modle=a"]},
            ": `where=['modle=a']` is not COLUMN=VALUE with a column of the table; did you mean `model`? the columns "
            "are model, id, score.",
        ),
        ({"where": ["model=c"]}, ": no row has the model 'c'; there are a, b."),
        (
            {},
            ' has 4 rows for 2 ids (such as x); choose the rows of one model, such as `where=["model=a"]`.',
        ),
        ({"columns": ["id=ident"]}, " has no column `ident`; the columns are model, id, score."),
    ],
)
def test_rows_and_columns_that_are_not_there_are_refused(tmp_path: Path, arguments: Row, problem: str) -> None:
    rows = [{"model": model, "id": item, "score": 1.0} for model in "ab" for item in "xy"]
    path = write(tmp_path / "s.jsonl", rows)
    with pytest.raises(DataError) as caught:
        read_published(str(path), **arguments)
    assert str(caught.value) == f"{path}{problem}"
    assert read_published(str(path), where=["model=b"]).items.height == 2


def test_fields_of_other_names_are_named(tmp_path: Path) -> None:
    rows = [{"uid": "a", "value": {"good": 2.0, "bad": 1.0}}]
    path = write(tmp_path / "s.jsonl", rows)
    columns = ["score_chosen=value.good", "score_rejected=value.bad"]
    assert right_first(read_published(str(path), columns=columns)) == {"a": (2.0, 1.0)}


def test_an_empty_number_of_right_responses_or_rank_is_none(tmp_path: Path) -> None:
    rows: list[Row] = [{"id": "1", "scores": [2.0, 1.0], "num_correct": ""}]
    assert read_published(str(write(tmp_path / "n.jsonl", rows))).items["rank"].to_list() == [[1, 2]]
    rows = [{"id": "1", "response": f"r{n}", "score": n / 2, "rank": ["", 2][n]} for n in range(2)]
    assert read_published(str(write(tmp_path / "r.csv", rows))).items["rank"].to_list() == [None]
