"""Who is shown what: the tasks of each prompt, fair shares, second annotators and hidden check items."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_chinese.annotations import check_tasks
from build_chinese.covering import design
from build_chinese.errors import TasksError
from build_chinese.tasks import TASKS, Tasks, make, read_tasks, write_tasks
from chinese_prompts import SAMPLE, counted_prompts, prompts_of, rows_of, sample_prompts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pluralbench_runs import UserError

SEVEN = [f"ann-{number}" for number in range(1, 8)]
PROMPTS = sample_prompts()


def loads(tasks: pl.DataFrame, annotators: list[str]) -> list[int]:
    counts = Counter(tasks["annotator"])
    return [counts[name] for name in annotators]


def fails(message: str, *args: Any, **named: Any) -> None:
    with pytest.raises(TasksError) as caught:
        make(*args, **{"seed": 1} | named)
    assert str(caught.value) == message
    assert isinstance(caught.value, UserError)
    assert caught.value.exit_status == 2


def test_the_sample_gets_its_own_tasks_each_for_another_annotator() -> None:
    tasks = make(PROMPTS, SEVEN, Tasks(), seed=1)
    assert tasks.schema == TASKS
    recorded = rows_of(SAMPLE / "annotations.jsonl")
    assert tasks["task"].to_list() == [row["task"] for row in recorded]
    assert tasks["responses"].to_list() == [row["triple"] for row in recorded]
    assert tasks["prompt"].to_list() == [row["prompt"] for row in recorded]
    assert dict(tasks.select("prompt", "config").iter_rows()) == dict(PROMPTS.select("id", "config").iter_rows())
    assert set(tasks["kind"]) == {"first"}
    assert set(tasks.group_by("prompt").agg(pl.col("annotator").n_unique())["annotator"]) == {5}
    assert sorted(loads(tasks, SEVEN)) == [28] * 3 + [29] * 4


def test_any_number_of_responses_is_covered() -> None:
    prompts = counted_prompts(*range(2, 14))
    tasks = make(prompts, [f"a{number}" for number in range(26)], Tasks(), seed=3)
    for prompt, responses in prompts.select("id", "responses").iter_rows():
        ids = [response["id"] for response in responses]
        shown = tasks.filter(prompt=prompt)["responses"].to_list()
        assert {frozenset(pair) for task in shown for pair in combinations(task, 2)} == {
            frozenset(pair) for pair in combinations(ids, 2)
        }
        assert [sorted(task) for task in shown] == [sorted(ids[place] for place in block) for block in design(len(ids))]
    assert tasks.filter(prompt="p1")["responses"].list.len().to_list() == [2]


def test_no_response_is_always_shown_first() -> None:
    tasks = make(counted_prompts(*[3] * 300, *[2] * 300), SEVEN, Tasks(), seed=1)
    places = Counter(response[-1] for response in tasks["responses"].list.first())
    assert 200 < places["a"] < 300  # of 600, a third of 300 and a half of 300
    assert 200 < places["b"] < 300
    assert 60 < places["c"] < 140


counts = st.lists(st.integers(2, 7), min_size=1, max_size=12)


@given(counts, st.integers(7, 12), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 5))
@example([5] * 7, 7, 1.0, 0)
@example([7, 7], 7, 1.0, 0)  # as many second annotators as there are annotators
@settings(max_examples=60)
def test_shares_are_fair_and_nobody_gets_a_task_twice(
    responses: list[int], people: int, overlap: float, seed: int
) -> None:
    annotators = [f"a{number}" for number in range(people)]
    tasks = make(counted_prompts(*responses), annotators, Tasks(overlap=overlap), seed=seed)
    load = loads(tasks, annotators)
    assert max(load) - min(load) <= 1
    assert not tasks.select("task", "annotator").is_duplicated().any()
    first = tasks.filter(kind="first")
    assert not first.select("prompt", "annotator").is_duplicated().any()
    assert first.height == sum(len(design(count)) for count in responses)
    second = tasks.filter(kind="overlap")
    assert second.height == round(overlap * first.height)
    assert set(second["task"]) <= set(first["task"])


@given(st.permutations(range(40)), st.permutations(SEVEN))
@settings(max_examples=10)
def test_the_order_of_prompts_and_annotators_changes_nothing(order: list[int], annotators: list[str]) -> None:
    checks = [row["task"] for row in rows_of(SAMPLE / "checks.jsonl")]
    options = Tasks(overlap=0.2)
    usual = make(PROMPTS, SEVEN, options, seed=1, checks=checks)
    other = make(PROMPTS[order], annotators, options, seed=1, checks=checks[::-1])
    assert other["prompt"].unique(maintain_order=True).to_list() == PROMPTS[order]["id"].to_list()
    assert other.sort("task", "annotator").equals(usual.sort("task", "annotator"))


def test_the_seed_draws() -> None:
    first, again, other = (make(PROMPTS, SEVEN, Tasks(), seed=seed) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    twice = [set(make(PROMPTS, SEVEN, Tasks(overlap=0.1), seed=seed).filter(kind="overlap")["task"]) for seed in (1, 2)]
    assert twice[0] != twice[1]
    # Not a rotation: every annotator meets every other on some prompt.
    met = first.join(first, on="prompt").filter(pl.col("annotator") != pl.col("annotator_right"))
    assert met.select("annotator", "annotator_right").unique().height == 7 * 6


def test_check_items_go_to_those_who_have_not_had_them() -> None:
    checks = check_tasks(SAMPLE / "checks.jsonl")
    assert checks == ["p04-t3", "p08-t5", "p14-t2", "p19-t4", "p32-t4", "p36-t4"]
    tasks = make(PROMPTS, SEVEN, Tasks(check_share=0.1), seed=1, checks=checks)
    given_again = tasks.filter(kind="check")
    assert given_again.height == 20
    assert set(given_again["task"]) <= set(checks)
    assert not tasks.select("task", "annotator").is_duplicated().any()
    assert max(loads(tasks, SEVEN)) - min(loads(tasks, SEVEN)) <= 1
    assert set(loads(given_again, SEVEN)) <= {2, 3, 4}
    assert make(PROMPTS, SEVEN, Tasks(check_share=0.1), seed=1).filter(kind="check").is_empty()
    assert make(PROMPTS, SEVEN, Tasks(check_share=0), seed=1, checks=checks).filter(kind="check").is_empty()
    # All there are: six for each, less the one annotator who has it anyway.
    every = make(PROMPTS, SEVEN, Tasks(check_share=36 / 200), seed=1, checks=checks)
    assert every.filter(kind="check").height == 36
    fails(
        "37 check items are asked for, and 6 known answers make 36 for these annotators; give more, or a "
        "`check_share` of 0.180 at most.",
        PROMPTS,
        SEVEN,
        Tasks(check_share=37 / 200),
        checks=checks,
    )
    fails(
        "The check item p99-t1 is no task; the tasks of a prompt are PROMPT-t1, PROMPT-t2, ...",
        PROMPTS,
        SEVEN,
        Tasks(),
        checks=["p01-t1", "p99-t1"],
    )


def test_too_few_annotators() -> None:
    fails(
        "p01 has 5 tasks, each for another annotator, and there are 3 annotators; name more, or set "
        "`several_of_a_prompt`.",
        PROMPTS,
        SEVEN[:3],
        Tasks(),
    )
    tasks = make(PROMPTS, SEVEN[:3], Tasks(several_of_a_prompt=True, overlap=1), seed=1)
    assert sorted(loads(tasks, SEVEN[:3])) == [133, 133, 134]
    assert not tasks.select("task", "annotator").is_duplicated().any()
    assert set(tasks.group_by("prompt", "annotator").len()["len"]) == {3, 4}
    alone = make(PROMPTS, ["one"], Tasks(several_of_a_prompt=True), seed=1)
    assert alone.height == 200
    fails(
        "A second annotator was asked for with `overlap`, and there is only one.",
        PROMPTS,
        ["one"],
        Tasks(several_of_a_prompt=True, overlap=0.1),
    )


def test_prompts_and_annotators_that_make_no_tasks() -> None:
    fails("There is no prompt to make tasks of.", PROMPTS.clear(), SEVEN, Tasks())
    fails("No annotator is named.", PROMPTS, [], Tasks())
    fails("The annotator 'ann' is named 2 times.", PROMPTS, ["ann", "Ann"], Tasks())
    fails(
        "The annotator '../x' cannot name a file; use letters, digits, and . _ @ + - within.",
        PROMPTS,
        [*SEVEN, "../x"],
        Tasks(),
    )
    fails(
        "The prompt p2 has 1 response, and a comparison takes two; leave it out.",
        counted_prompts(3, 1),
        SEVEN,
        Tasks(),
    )
    fails(
        "The prompt p1 has no responses, and a comparison takes two; leave it out.",
        counted_prompts(0),
        SEVEN,
        Tasks(),
    )
    twice = prompts_of({"p": ["一", "二", "三"]}).with_columns(
        pl.concat_list("responses", pl.col("responses").list.slice(0, 1))
    )
    fails("The prompt p has the response p-a twice, so it would be compared with itself.", twice, SEVEN, Tasks())
    assert make(counted_prompts(3), ["张三@公司.cn", "李四"], Tasks(), seed=1).height == 1


def test_tasks_that_somebody_else_gave_out_are_read(tmp_path: Path) -> None:
    recorded = read_tasks(SAMPLE / "annotations.jsonl", PROMPTS)
    assert recorded.schema == TASKS
    assert recorded["annotator"].to_list() == [row["annotator"] for row in rows_of(SAMPLE / "annotations.jsonl")]
    assert set(recorded["kind"]) == {"first"}
    checks = [row["task"] for row in rows_of(SAMPLE / "checks.jsonl")]
    made = make(PROMPTS, SEVEN, Tasks(overlap=0.3), seed=1, checks=checks)
    write_tasks(tmp_path / "tasks.jsonl", made)
    assert read_tasks(tmp_path / "tasks.jsonl", PROMPTS).equals(made)


GOOD = {"task": "p1-t1", "prompt": "p1", "annotator": "a", "responses": ["p1-a", "p1-b"]}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "{} holds no rows."),
        ([GOOD | {"annotator": " "}], "{}, row 1: it has no `annotator`."),
        ([GOOD, GOOD | {"task": 7}], "{}, row 2: it has no `task`."),
        ([GOOD | {"prompt": "p9"}], "{}, the task p1-t1: there is no prompt p9."),
        ([GOOD | {"responses": ["p1-a", "p2-b"]}], "{}, the task p1-t1: the prompt p1 has no response p2-b."),
        ([GOOD | {"responses": ["p1-a"]}], "{}, the task p1-t1 shows 1 responses; two or three are compared."),
        ([GOOD | {"responses": ["p1-a", "p1-a"]}], "{}, the task p1-t1 compares the response p1-a with itself."),
        ([GOOD | {"responses": "p1-a"}], "{}, the task p1-t1 has no `responses`, a list of two or three ids."),
        ([GOOD | {"kind": "gold"}], "{}, the task p1-t1: the kind 'gold' is none of first, overlap, check."),
        ([GOOD, GOOD], "{} gives the task p1-t1 to a twice."),
        (
            [GOOD, GOOD | {"annotator": "b", "responses": ["p1-b", "p1-a"]}],
            "{}, the task p1-t1 shows different responses in different rows.",
        ),
        (
            [GOOD | {"annotator": "a/b"}],
            "The annotator 'a/b' cannot name a file; use letters, digits, and . _ @ + - within.",
        ),
    ],
)
def test_files_that_give_no_tasks(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    with pytest.raises(TasksError) as caught:
        read_tasks(path, counted_prompts(3, 3))
    assert str(caught.value) == message.format(path)
