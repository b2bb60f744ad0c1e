"""Annotation tasks: which responses are shown together, and to whom (CHEEMS, section 3.2 and appendix D).

A task shows two or three responses of a prompt. Its id is PROMPT-tNUMBER, and whoever gets it gets it by that id, be it
for the first time, as a second annotator or because its answer is known: so nobody can tell which is which.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import rng_for
from pluralbench_studies import CONSENSUS, annotator_names, assign
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
# As in the paper, five responses are shown along the ring of five adjacent triples, though four triples would cover all
# pairs: so each response is seen three times, once in each place.
RING: list[tuple[int, ...]] = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]


def make(
    prompts: pl.DataFrame,
    annotators: Sequence[str],
    options: Tasks,
    *,
    seed: int,
    checks: Collection[str] = (),
) -> pl.DataFrame:
    """Make the tasks of all prompts and give each to an annotator (columns of `TASKS`, a row for each task given).

    prompts: `id`, `config` and `responses` (structs with an `id`). Five responses are shown along the ring that their
    order makes, any other number in an order that is drawn. checks: ids of tasks whose answers are known. Who gets
    what: see `pluralbench_studies.assign`; the tasks of a prompt are a group. Rows are sorted by prompt, as given, by
    task and by kind.

    Raises `TasksError` for prompts with fewer than two responses or one of them twice and for too few annotators, and
    `AssignmentError`.
    """
    if CONSENSUS in annotator_names(annotators):
        raise TasksError(f"No annotator can be named {CONSENSUS}: it stands for what a discussion came to.")
    if prompts.is_empty():
        raise TasksError("There is no prompt to make tasks of.")
    shown = {
        row["id"]: _tasks(row["id"], [response["id"] for response in row["responses"] or []], seed)
        for row in prompts.iter_rows(named=True)
    }
    most = max(shown, key=lambda prompt: len(shown[prompt]))
    if len(shown[most]) > len(annotators) and not options.several_of_a_prompt:
        raise TasksError(
            f"{most} has {len(shown[most])} tasks, each for another annotator, and there are {len(annotators)} "
            "annotators; name more, or set `several_of_a_prompt`."
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
    given = assign(
        items.select(item="task", group="prompt"),
        annotators,
        seed=seed,
        overlap=options.overlap,
        checks=checks,
        check_share=options.check_share,
    )
    return items.join(given, left_on="task", right_on="item", maintain_order="left_right").select(TASKS.names())


def blocks_of(count: int) -> list[tuple[int, ...]]:
    """The places of the responses that are shown together, so that every two of `count` responses meet, sorted.

    Five are shown along the ring, two together, and any others in triples, each of which makes as many new pairs as
    can be (the first such one).
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
    """The ids of the responses of each task of a prompt, by the id of the task."""
    if len(responses) < 2:
        count = f"{len(responses) or 'no'} response{'' if len(responses) else 's'}"
        raise TasksError(f"The prompt {prompt} has {count}, and a comparison takes two; leave it out.")
    if len(set(responses)) < len(responses):
        again = Counter(responses).most_common(1)[0][0]
        raise TasksError(f"The prompt {prompt} has the response {again} twice, so it would be compared with itself.")
    found = {}
    for number, block in enumerate(blocks_of(len(responses)), start=1):
        ids = [responses[place] for place in block]
        # Along the ring each response stands once in each place.
        if len(responses) != 5:
            rng_for(seed, "shown", prompt, number).shuffle(ids)
        found[f"{prompt}-t{number}"] = ids
    return found


def write_tasks(path: Path, tasks: pl.DataFrame) -> None:
    """Write tasks as JSONL, which `read_tasks` takes. It names the kinds, so it is not for the annotators."""
    write_jsonl(tasks.iter_rows(named=True), path)


def read_tasks(path: Path, prompts: pl.DataFrame) -> pl.DataFrame:
    """Tasks that somebody has made and given out (columns of `TASKS`).

    Each line has `task`, `annotator` and `responses` or `triple`, the ids of the responses of one prompt in the order
    shown; `kind` is "first" where it is not there. Other keys, such as marks, are not read.

    Raises `TasksError`, naming the task, for anything else, and for a task given twice to the same annotator.
    """
    of_response = {
        (row["id"], response["id"]): row["config"]
        for row in prompts.iter_rows(named=True)
        for response in row["responses"]
    }
    known, rows = set(prompts["id"]), []
    shown: dict[str, list[str]] = {}
    for number, row in enumerate(read_jsonl(path, TasksError), start=1):
        values = {name: row.get(name) for name in ("task", "prompt", "annotator")}
        for name, value in values.items():
            if not isinstance(value, str) or not value.strip():
                raise TasksError(f"{path}, row {number:,}: it has no `{name}`.")
        where = f"{path}, the task {row['task']}"
        responses = _responses(row, where)
        if row["prompt"] not in known:
            raise TasksError(f"{where}: there is no prompt {row['prompt']}.")
        for response in responses:
            if (row["prompt"], response) not in of_response:
                raise TasksError(f"{where}: the prompt {row['prompt']} has no response {response}.")
        if shown.setdefault(row["task"], responses) != responses:
            raise TasksError(f"{where} shows different responses in different rows.")
        if row.get("kind", FIRST) not in KINDS:
            raise TasksError(f"{where}: the kind {row['kind']!r} is none of {', '.join(KINDS)}.")
        config = of_response[row["prompt"], responses[0]]
        rows.append((row["task"], row["prompt"], config, responses, row["annotator"], row.get("kind", FIRST)))
    frame = pl.DataFrame(rows, schema=TASKS, orient="row")
    again = frame.filter(pl.struct("task", "annotator").is_duplicated())
    if again.height:
        raise TasksError(f"{path} gives the task {again['task'][0]} to {again['annotator'][0]} twice.")
    annotator_names(frame["annotator"].unique().to_list())
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
