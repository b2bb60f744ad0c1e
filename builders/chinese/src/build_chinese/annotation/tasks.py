"""Annotation tasks: which responses are shown together, and to whom (CHEEMS, section 3.2 and appendix D).

A task shows two or three responses of a prompt. Its id is PROMPT-tNUMBER. First tasks, overlaps and check items share
these ids, so annotators cannot tell them apart.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from pluralbench_runs import rng_for
from pluralbench_runs.recipe import first_validation_error
from pluralbench_studies import StudyError, assign, check_annotators, draw
from pluralbench_tables import read_jsonl
from pydantic import AfterValidator, BaseModel, StringConstraints, ValidationError

from build_chinese.recipe import Tasks

TASKS = pl.Schema(
    dict.fromkeys(("task", "prompt", "config"), pl.String)
    | {"responses": pl.List(pl.String), "annotator": pl.String, "kind": pl.String}
)
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
# As in the paper, five responses form a ring of five adjacent triples. Four triples would cover all pairs, but in the
# ring each response is shown three times.
RING: list[tuple[int, ...]] = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]


def _check_responses(ids: list[str]) -> list[str]:
    if len(ids) not in {2, 3} or len(set(ids)) < len(ids):
        raise ValueError("two or three different ids are compared")
    return ids


class Task(BaseModel):
    """A row of a file of tasks."""

    task: Text
    prompt: Text
    annotator: Text
    responses: Annotated[list[str], AfterValidator(_check_responses)]
    kind: Literal["first", "overlap", "check"] = "first"


def build_tasks(
    prompts: pl.DataFrame, annotators: Sequence[str], options: Tasks, *, seed: int, checks: Collection[str] = ()
) -> pl.DataFrame:
    """Make the tasks of all prompts and assign them to annotators; a prompt is a group of `assign`.

    Which responses share a task, and the order in which a task shows them, are drawn; the order of the responses
    changes nothing. `checks`: ids of tasks with known answers.

    Returns:
        Columns of `TASKS`, one row per assigned task, sorted by prompt (in the order of `prompts`), task and kind.

    Raises:
        StudyError: A prompt has fewer than two responses or one of them twice, or the tasks cannot be assigned.
    """
    check_annotators(annotators)
    if prompts.is_empty():
        raise StudyError("There are no prompts to make tasks of.")
    shown = {
        row["id"]: _tasks(row["id"], [response["id"] for response in row["responses"] or []], seed)
        for row in prompts.iter_rows(named=True)
    }
    most = max(shown, key=lambda prompt: len(shown[prompt]))
    if len(shown[most]) > len(annotators) and not options.several_of_a_prompt:
        raise StudyError(
            f"{most} has {len(shown[most])} tasks for different annotators, and there are only {len(annotators)} "
            "annotators; add annotators or set `tasks.several_of_a_prompt=True`."
        )
    items = pl.DataFrame(
        [
            (task, prompt, config, responses)
            for prompt, config in prompts.select("id", "config").iter_rows()
            for task, responses in shown[prompt].items()
        ],
        schema=list(TASKS.items())[:4],
        orient="row",
    )
    assignments = assign(
        items.select(item="task", group="prompt"),
        annotators,
        seed=seed,
        overlap=options.overlap,
        checks=checks,
        check_share=options.check_share,
    )
    return items.join(assignments, left_on="task", right_on="item", maintain_order="left_right").select(TASKS.names())


def blocks_of(count: int) -> list[tuple[int, ...]]:
    """Choose blocks of two or three of `count` responses, as sorted places, so that every pair is shown together.

    Five responses use the ring. Other counts use triples, each of which greedily adds the most new pairs.
    """
    if count == len(RING):
        return RING
    left = set(combinations(range(count), 2))
    blocks: list[tuple[int, ...]] = []
    while left:
        blocks.append(
            max(combinations(range(count), min(count, 3)), key=lambda block: len(left.intersection(_pairs(block))))
        )
        left -= _pairs(blocks[-1])
    return sorted(blocks)


def _pairs(block: tuple[int, ...]) -> set[tuple[int, ...]]:
    return set(combinations(block, 2))


def _tasks(prompt: str, responses: Sequence[str], seed: int) -> dict[str, list[str]]:
    """The response ids of each task of a prompt, by task id."""
    if len(responses) < 2:
        raise StudyError(f"The prompt {prompt} has {len(responses)} of the two responses to compare; remove it.")
    if len(set(responses)) < len(responses):
        repeated = Counter(responses).most_common(1)[0][0]
        raise StudyError(f"The prompt {prompt} has the response {repeated} twice; remove one.")
    drawn, tasks = draw(responses, len(responses), seed, "ring", prompt), {}
    for number, block in enumerate(blocks_of(len(responses)), start=1):
        ids = [drawn[place] for place in block]
        rng_for(seed, "shown", prompt, number).shuffle(ids)
        tasks[f"{prompt}-t{number}"] = ids
    return tasks


def read_tasks(path: Path, prompts: pl.DataFrame) -> pl.DataFrame:
    """Read assigned tasks (`TASKS`) from JSONL rows of `Task`; other keys, such as annotations, are ignored.

    Raises:
        StudyError: A row is invalid, names an unknown prompt or response, or repeats a task of the same annotator.
    """
    config_of = dict(prompts.select("id", "config").iter_rows())
    ids = {row["id"]: {response["id"] for response in row["responses"]} for row in prompts.iter_rows(named=True)}
    rows = []
    for number, row in enumerate(read_jsonl(path, StudyError), start=1):
        where = f"{path}, row {number:,}"
        try:
            task = Task.model_validate(row)
        except ValidationError as error:
            raise StudyError(f"{where}: {first_validation_error(Task, error)}") from None
        if task.prompt not in ids:
            raise StudyError(f"{where}: the prompt {task.prompt} does not exist.")
        unknown = [response for response in task.responses if response not in ids[task.prompt]]
        if unknown:
            raise StudyError(f"{where}: the prompt {task.prompt} has no response {unknown[0]}.")
        rows.append(task.model_dump() | {"config": config_of[task.prompt]})
    frame = pl.DataFrame(rows, schema=TASKS)
    repeated = frame.filter(pl.struct("task", "annotator").is_duplicated())
    if repeated.height:
        raise StudyError(f"{path} assigns the task {repeated['task'][0]} to {repeated['annotator'][0]} twice.")
    different = frame.unique(["task", "responses"]).filter(pl.col("task").is_duplicated())
    if different.height:
        raise StudyError(f"{path}: the task {different['task'].sort()[0]} shows different responses in different rows.")
    check_annotators(frame["annotator"].unique().to_list())
    return frame
