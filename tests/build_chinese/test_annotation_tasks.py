"""Who is shown what: the tasks of each prompt, fair shares, second annotators and hidden check items."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_chinese.annotation.annotations import check_tasks
from build_chinese.annotation.tasks import TASKS, build_tasks, read_tasks
from build_chinese.recipe import Tasks
from chinese_project import read_rows
from chinese_prompts import SAMPLE, counted_prompts, prompts_of, sample_prompts
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_studies import StudyError

SEVEN = [f"ann-{number}" for number in range(1, 8)]
PROMPTS = sample_prompts()


def loads(tasks: pl.DataFrame, annotators: list[str]) -> list[int]:
    counts = Counter(tasks["annotator"])
    return [counts[name] for name in annotators]


def fails(message: str, *args: Any) -> None:
    with pytest.raises(StudyError) as caught:
        build_tasks(*args, seed=1)
    assert str(caught.value) == message
    assert caught.value.exit_status == 2


def test_the_sample_gets_its_own_tasks_each_for_another_annotator() -> None:
    tasks = build_tasks(PROMPTS, SEVEN, Tasks(), seed=1)
    assert tasks.schema == TASKS
    recorded = read_rows(SAMPLE / "annotations.jsonl")
    assert tasks["task"].to_list() == [row["task"] for row in recorded]
    for ids in tasks.group_by("prompt").agg("responses")["responses"]:
        assert set(Counter(response for triple in ids for response in triple).values()) == {3}
        assert len({frozenset(pair) for triple in ids for pair in combinations(triple, 2)}) == 10
    assert tasks["prompt"].to_list() == [row["prompt"] for row in recorded]
    assert dict(tasks.select("prompt", "config").iter_rows()) == dict(PROMPTS.select("id", "config").iter_rows())
    assert set(tasks["kind"]) == {"first"}
    assert set(tasks.group_by("prompt").agg(pl.col("annotator").n_unique())["annotator"]) == {5}
    assert sorted(loads(tasks, SEVEN)) == [28] * 3 + [29] * 4


def test_any_number_of_responses_is_covered() -> None:
    prompts = counted_prompts(*range(2, 14))
    tasks = build_tasks(prompts, [f"a{number}" for number in range(28)], Tasks(), seed=3)
    for prompt, responses in prompts.select("id", "responses").iter_rows():
        ids = [response["id"] for response in responses]
        shown = tasks.filter(prompt=prompt)["responses"].to_list()
        assert {frozenset(pair) for task in shown for pair in combinations(task, 2)} == {
            frozenset(pair) for pair in combinations(ids, 2)
        }
        # Schönheim: each response meets the others two at a time, and a triple holds three.
        least = -(-len(ids) * -(-(len(ids) - 1) // 2) // 3)
        assert len(shown) <= 1.2 * least + 1
    assert tasks.filter(prompt="p1")["responses"].list.len().to_list() == [2]


def test_five_responses_are_shown_in_drawn_order_and_their_ring_is_drawn_too() -> None:
    tasks = build_tasks(counted_prompts(*[5] * 300), SEVEN, Tasks(), seed=1)
    shown = [[response[-1] for response in triple] for triple in tasks["responses"]]
    first = Counter(min(pair) == pair[0] for triple in shown for pair in combinations(triple, 2))
    assert abs(first[True] / 4500 - 0.5) < 0.03  # four standard deviations of 4,500 draws
    twice = Counter(frozenset(pair) for triple in shown for pair in combinations(triple, 2))
    assert len(twice) == 10
    assert all(abs(count - 450) < 4 * 75**0.5 for count in twice.values())  # 300, and 150 of 300 once more


@given(st.permutations(range(40)), st.permutations(SEVEN))
@settings(max_examples=5)
def test_the_order_of_prompts_and_annotators_changes_nothing(order: list[int], annotators: list[str]) -> None:
    checks = check_tasks(SAMPLE / "checks.jsonl")
    assert checks == ["p04-t3", "p08-t5", "p14-t2", "p19-t4", "p32-t4", "p36-t4"]
    options = Tasks(overlap=0.2, check_share=0.1)
    usual = build_tasks(PROMPTS, SEVEN, options, seed=1, checks=checks)
    other = build_tasks(PROMPTS[order], annotators, options, seed=1, checks=checks[::-1])
    assert other["prompt"].unique(maintain_order=True).to_list() == PROMPTS[order]["id"].to_list()
    assert other.sort("task", "annotator").equals(usual.sort("task", "annotator"))
    assert usual["kind"].value_counts().sort("kind").rows() == [("check", 24), ("first", 200), ("overlap", 40)]
    assert set(usual.filter(kind="check")["task"]) <= set(checks)
    assert max(loads(usual, SEVEN)) - min(loads(usual, SEVEN)) <= 1


def test_too_few_annotators() -> None:
    fails(
        "p01 has 5 tasks for different annotators, and there are only 3 annotators; add annotators or set "
        "`tasks.several_of_a_prompt=True`.",
        PROMPTS,
        SEVEN[:3],
        Tasks(),
    )
    tasks = build_tasks(PROMPTS, SEVEN[:3], Tasks(several_of_a_prompt=True, overlap=1), seed=1)
    assert sorted(loads(tasks, SEVEN[:3])) == [133, 133, 134]
    assert not tasks.select("task", "annotator").is_duplicated().any()
    assert set(tasks.group_by("prompt", "annotator").len()["len"]) == {3, 4}
    alone = build_tasks(PROMPTS, ["one"], Tasks(several_of_a_prompt=True), seed=1)
    assert alone.height == 200


GOOD = {"task": "p1-t1", "prompt": "p1", "annotator": "a", "responses": ["p1-a", "p1-b"]}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([GOOD | {"annotator": " "}], "{}, row 1: `annotator`: String should have at least 1 character."),
        ([GOOD | {"prompt": "p9"}], "{}, row 1: the prompt p9 does not exist."),
        ([GOOD | {"responses": ["p1-a", "p2-b"]}], "{}, row 1: the prompt p1 has no response p2-b."),
        ([GOOD | {"responses": ["p1-a"]}], "{}, row 1: `responses`: two or three different ids are compared."),
        ([GOOD, GOOD], "{} assigns the task p1-t1 to a twice."),
        (
            [GOOD, GOOD | {"annotator": "b", "responses": ["p1-b", "p1-a"]}],
            "{}: the task p1-t1 shows different responses in different rows.",
        ),
    ],
)
def test_files_that_give_no_tasks(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        read_tasks(path, counted_prompts(3, 3))
    assert str(caught.value) == message.format(path)


@given(st.integers(2, 6), st.permutations(range(6)))
@settings(max_examples=20)
def test_a_prompt_is_shown_alike_whatever_the_order_of_its_responses_and_whatever_comes_with_it(
    count: int, order: list[int]
) -> None:
    prompts = counted_prompts(count, 5)
    usual = build_tasks(prompts[:1], SEVEN, Tasks(), seed=1).drop("annotator")
    again = prompts[:1].with_columns(pl.col("responses").list.gather([place for place in order if place < count]))
    other = build_tasks(pl.concat([prompts[1:], again]), SEVEN, Tasks(), seed=1).drop("annotator")
    assert other.filter(prompt="p1").equals(usual)


def test_prompts_and_annotators_that_make_no_tasks() -> None:
    fails("There are no prompts to make tasks of.", PROMPTS.clear(), SEVEN, Tasks())
    fails(
        "The prompt p2 has 1 of the two responses to compare; remove it.",
        counted_prompts(3, 1),
        SEVEN,
        Tasks(),
    )
    fails(
        "The prompt p1 has 0 of the two responses to compare; remove it.",
        counted_prompts(0),
        SEVEN,
        Tasks(),
    )
    twice = prompts_of({"p": ["一", "二", "三"]}).with_columns(
        pl.concat_list("responses", pl.col("responses").list.slice(0, 1))
    )
    fails("The prompt p has the response p-a twice; remove one.", twice, SEVEN, Tasks())
