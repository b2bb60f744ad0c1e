"""Annotation tasks: which responses are shown together, and to whom (CHEEMS, section 3.2 and appendix D).

A task shows two or three responses of a prompt. Its id is PROMPT-tNUMBER. First tasks, overlaps and check items share
these ids, so annotators cannot tell them apart.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import rng_for
from pluralbench_studies import CONSENSUS, assign, check_annotators, draw
from pluralbench_tables import read_jsonl, write_jsonl

from build_chinese.errors import TasksError
from build_chinese.recipe import Tasks

FIRST, OVERLAP, CHECK = KINDS = ("first", "overlap", "check")
TASKS = pl.Schema(
    [
        *((name, pl.String) for name in ("task", "prompt", "config")),
        ("responses", pl.List(pl.String)),
        *((name, pl.String) for name in ("annotator", "kind")),
    ]
)
# As in the paper, five responses form a ring of five adjacent triples. Four triples would cover all pairs, but in the
# ring each response is shown three times.
RING: list[tuple[int, ...]] = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]


def build_tasks(
    prompts: pl.DataFrame,
    annotators: Sequence[str],
    options: Tasks,
    *,
    seed: int,
    checks: Collection[str] = (),
) -> pl.DataFrame:
    """Make the tasks of all prompts and assign them to annotators (`pluralbench_studies.assign`).

    The tasks of a prompt are one group of the assignment.

    Args:
        prompts: `id`, `config` and `responses` (structs with an `id`). Which responses share a task, and the order in
            which a task shows them, are drawn; the order of the responses changes nothing.
        annotators: Names of the annotators.
        options: Overlap, share of check items and the like.
        seed: Seed of the random order and of the assignment.
        checks: Ids of tasks with known answers.

    Returns:
        Columns of `TASKS`, one row per assigned task, sorted by prompt (in the order of `prompts`), task and kind.

    Raises:
        TasksError: A prompt has fewer than two responses or one of them twice, or there are too few annotators.
        AssignmentError: The tasks cannot be assigned.
    """
    if CONSENSUS in check_annotators(annotators):
        raise TasksError(f"No annotator can be named {CONSENSUS}: that name stands for the result of a discussion.")
    if prompts.is_empty():
        raise TasksError("There are no prompts to make tasks of.")
    shown = {
        row["id"]: _tasks(row["id"], [response["id"] for response in row["responses"] or []], seed)
        for row in prompts.iter_rows(named=True)
    }
    most = max(shown, key=lambda prompt: len(shown[prompt]))
    if len(shown[most]) > len(annotators) and not options.several_of_a_prompt:
        raise TasksError(
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
    """Choose blocks of two or three of `count` responses so that every pair is shown together.

    Five responses use the ring. Other counts use triples, each of which greedily adds the most new pairs (the first
    such triple).

    Returns:
        Sorted blocks of zero-based places.
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
        count = f"{len(responses) or 'no'} response{'' if len(responses) else 's'}"
        raise TasksError(f"The prompt {prompt} has {count}, and a comparison needs two; remove the prompt.")
    if len(set(responses)) < len(responses):
        repeated = Counter(responses).most_common(1)[0][0]
        raise TasksError(f"The prompt {prompt} has the response {repeated} twice; remove one.")
    drawn, tasks = draw(responses, len(responses), seed, "ring", prompt), {}
    for number, block in enumerate(blocks_of(len(responses)), start=1):
        ids = [drawn[place] for place in block]
        rng_for(seed, "shown", prompt, number).shuffle(ids)
        tasks[f"{prompt}-t{number}"] = ids
    return tasks


def write_tasks(path: Path, tasks: pl.DataFrame) -> None:
    """Write tasks as JSONL for `read_tasks`. The file names the kinds, so annotators must not see it."""
    write_jsonl(tasks.iter_rows(named=True), path)


def read_tasks(path: Path, prompts: pl.DataFrame) -> pl.DataFrame:
    """Read assigned tasks.

    Args:
        path: JSONL with `task`, `prompt`, `annotator` and `responses` or `triple`, the ids of the prompt's responses in
            the order shown. `kind` is optional ("first"). Other keys, such as marks, are ignored.
        prompts: `id`, `config` and `responses`.

    Returns:
        Columns of `TASKS`.

    Raises:
        TasksError: A row is invalid, names an unknown prompt or response, or repeats a task of the same annotator.
    """
    of_response = {
        (row["id"], response["id"]): row["config"]
        for row in prompts.iter_rows(named=True)
        for response in row["responses"]
    }
    prompt_ids, rows = set(prompts["id"]), []
    shown: dict[str, list[str]] = {}
    for number, row in enumerate(read_jsonl(path, TasksError), start=1):
        values = {name: row.get(name) for name in ("task", "prompt", "annotator")}
        for name, value in values.items():
            if not isinstance(value, str) or not value.strip():
                raise TasksError(f"{path}, row {number:,}: `{name}` is missing.")
        where = f"{path}, the task {row['task']}"
        responses = _responses(row, where)
        if row["prompt"] not in prompt_ids:
            raise TasksError(f"{where}: the prompt {row['prompt']} does not exist.")
        for response in responses:
            if (row["prompt"], response) not in of_response:
                raise TasksError(f"{where}: the prompt {row['prompt']} has no response {response}.")
        if shown.setdefault(row["task"], responses) != responses:
            raise TasksError(f"{where} shows different responses in different rows.")
        if row.get("kind", FIRST) not in KINDS:
            raise TasksError(f"{where}: the kind {row['kind']!r} is not one of {', '.join(KINDS)}.")
        config = of_response[row["prompt"], responses[0]]
        rows.append((row["task"], row["prompt"], config, responses, row["annotator"], row.get("kind", FIRST)))
    frame = pl.DataFrame(rows, schema=TASKS, orient="row")
    repeated = frame.filter(pl.struct("task", "annotator").is_duplicated())
    if repeated.height:
        raise TasksError(f"{path} assigns the task {repeated['task'][0]} to {repeated['annotator'][0]} twice.")
    check_annotators(frame["annotator"].unique().to_list())
    return frame


def _responses(row: Mapping[str, Any], where: str) -> list[str]:
    responses = row.get("responses", row.get("triple"))
    if not isinstance(responses, list) or not all(isinstance(name, str) for name in responses):
        raise TasksError(f"{where} has no `responses`, a list of two or three ids.")
    if len(responses) not in {2, 3}:
        raise TasksError(f"{where} shows {len(responses)} responses; two or three are compared.")
    if len(set(responses)) < len(responses):
        raise TasksError(f"{where} compares the response {Counter(responses).most_common(1)[0][0]} with itself.")
    return responses
