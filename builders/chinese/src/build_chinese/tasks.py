"""Annotation tasks: which responses are shown together, and to whom (CHEEMS, section 3.2 and appendix D).

A task shows two or three responses of a prompt. Its id is PROMPT-tNUMBER, and whoever gets it gets it by that id, be it
for the first time, as a second annotator or because its answer is known: so nobody can tell which is which.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import Table, stream
from pydantic import Field

from build_chinese.covering import design
from build_chinese.errors import TasksError
from build_chinese.text_files import read_jsonl, write_jsonl

FIRST, OVERLAP, CHECK = KINDS = ("first", "overlap", "check")
TASKS = pl.Schema(
    [
        *((name, pl.String) for name in ("task", "prompt", "config")),
        ("responses", pl.List(pl.String)),
        *((name, pl.String) for name in ("annotator", "kind")),
    ]
)
NAME = re.compile(r"[\w@][\w.@+-]*")


class Tasks(Table):
    """How tasks are given to annotators.

    overlap: the share of tasks that a second annotator gets too. check_share: so many check items for each other task,
    where there are any. several_of_a_prompt: whether an annotator may get several tasks of a prompt where it has more
    tasks than there are annotators; without, that is an error.
    """

    overlap: float = Field(default=0.0, ge=0, le=1)
    check_share: float = Field(default=0.05, ge=0, le=1)
    several_of_a_prompt: bool = False


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
    order makes, any other number in an order that is drawn. checks: ids of tasks whose answers are known; rows of the
    kind "check" are these once more, for annotators who do not have them.

    The tasks of a prompt go to the annotators who have the fewest so far, ties are drawn: so all get the same number of
    tasks, or one more. Nobody gets a task twice. The order of the prompts and of the annotators changes nothing. Rows
    are sorted by prompt, as given, by task and by kind.

    Raises `TasksError` for prompts with fewer than two responses or one of them twice, for too few annotators, for
    checks that are no tasks, and for more check items than there are.
    """
    names = _names(annotators)
    if prompts.is_empty():
        raise TasksError("There is no prompt to make tasks of.")
    shown = {
        row["id"]: _tasks(row["id"], [response["id"] for response in row["responses"] or []], seed)
        for row in prompts.iter_rows(named=True)
    }
    most = max(shown, key=lambda prompt: len(shown[prompt]))
    if len(shown[most]) > len(names) and not options.several_of_a_prompt:
        raise TasksError(
            f"{most} has {len(shown[most])} tasks, each for another annotator, and there are {len(names)} annotators; "
            "name more, or set `several_of_a_prompt`."
        )
    twice = _twice([task for tasks in shown.values() for task in tasks], options.overlap, seed)
    if twice and len(names) < 2:
        raise TasksError("A second annotator was asked for with `overlap`, and there is only one.")
    load = dict.fromkeys(names, 0)
    given = dict[tuple[str, str], str]()
    for prompt in sorted(shown):
        given |= _give(prompt, list(shown[prompt]), twice, load, seed)
    if checks and options.check_share:
        known = {task for tasks in shown.values() for task in tasks}
        given |= _check_items(checks, known, given, load, options.check_share, seed)
    return _frame(prompts, shown, given)


def _names(annotators: Sequence[str]) -> list[str]:
    names = sorted(annotators)
    if not names:
        raise TasksError("No annotator is named.")
    for name in names:
        if not NAME.fullmatch(name):
            raise TasksError(f"The annotator {name!r} cannot name a file; use letters, digits, and . _ @ + - within.")
    for folded, count in Counter(name.casefold() for name in names).items():
        if count > 1:
            raise TasksError(f"The annotator {folded!r} is named {count} times.")
    return names


def _tasks(prompt: str, responses: Sequence[str], seed: int) -> dict[str, list[str]]:
    """The ids of the responses of each task of a prompt, by the id of the task."""
    if len(responses) < 2:
        count = f"{len(responses) or 'no'} response{'' if len(responses) else 's'}"
        raise TasksError(f"The prompt {prompt} has {count}, and a comparison takes two; leave it out.")
    if len(set(responses)) < len(responses):
        again = Counter(responses).most_common(1)[0][0]
        raise TasksError(f"The prompt {prompt} has the response {again} twice, so it would be compared with itself.")
    found = {}
    for number, block in enumerate(design(len(responses)), start=1):
        ids = [responses[place] for place in block]
        # Along the ring each response stands once in each place.
        if len(responses) != 5:
            stream(seed, "shown", prompt, number).shuffle(ids)
        found[f"{prompt}-t{number}"] = ids
    return found


def _twice(tasks: Sequence[str], share: float, seed: int) -> set[str]:
    """The tasks that a second annotator gets."""
    if not share:
        return set()
    drawn = sorted((stream(seed, "overlap", task).random(), task) for task in tasks)
    return {task for _, task in drawn[: round(share * len(tasks))]}


def _give(
    prompt: str, tasks: list[str], twice: Collection[str], load: dict[str, int], seed: int
) -> dict[tuple[str, str], str]:
    """The kind of each (task, annotator) of a prompt."""
    # Tasks for two come last, so that in a circle of annotators their second ones stand apart from their first ones...
    tasks.sort(key=lambda task: task in twice)
    again = [task for task in tasks if task in twice]
    # ... unless the circle closes just there.
    if again and len(again) % len(load) == 0:
        again = again[1:] + again[:1]
    people = [*load]
    stream(seed, "annotators", prompt).shuffle(people)
    people.sort(key=load.__getitem__)
    given = dict[tuple[str, str], str]()
    for slot, task in enumerate([*tasks, *again]):
        annotator = people[slot % len(people)]
        given[task, annotator] = FIRST if slot < len(tasks) else OVERLAP
        load[annotator] += 1
    return given


def _check_items(
    checks: Collection[str],
    known: Collection[str],
    given: Mapping[tuple[str, str], str],
    load: dict[str, int],
    share: float,
    seed: int,
) -> dict[tuple[str, str], str]:
    """Check items, each to the annotator with the fewest tasks who has not had all of them."""
    strange = sorted(set(checks) - set(known))
    if strange:
        raise TasksError(f"The check item {strange[0]} is no task; the tasks of a prompt are PROMPT-t1, PROMPT-t2, ...")
    left = {
        name: sorted(
            (task for task in set(checks) if (task, name) not in given),
            key=lambda task: stream(seed, "check", name, task).random(),
        )
        for name in load
    }
    wanted, there = round(share * len(given)), sum(map(len, left.values()))
    if wanted > there:
        raise TasksError(
            f"{wanted:,} check items are asked for, and {len(set(checks)):,} known answers make {there:,} for these "
            f"annotators; give more, or a `check_share` of {there / len(given):.3f} at most."
        )
    draw = stream(seed, "checks")
    found = {}
    for _ in range(wanted):
        able = [name for name in load if left[name]]
        fewest = min(load[name] for name in able)
        annotator = draw.choice([name for name in able if load[name] == fewest])
        found[left[annotator].pop(), annotator] = CHECK
        load[annotator] += 1
    return found


def _frame(
    prompts: pl.DataFrame, shown: Mapping[str, Mapping[str, list[str]]], given: Mapping[tuple[str, str], str]
) -> pl.DataFrame:
    by_task: dict[str, list[tuple[int, str]]] = {}
    for (task, annotator), kind in given.items():
        by_task.setdefault(task, []).append((KINDS.index(kind), annotator))
    rows = [
        (task, prompt, config, responses, annotator, KINDS[kind])
        for prompt, config in prompts.select("id", "config").iter_rows()
        for task, responses in shown[prompt].items()
        for kind, annotator in sorted(by_task[task])
    ]
    return pl.DataFrame(rows, schema=TASKS, orient="row")


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
    _names(frame["annotator"].unique().to_list())
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
