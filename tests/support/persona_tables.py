"""Invented items of the persona judge: three tasks, of which one has ties, and what a judge is shown of them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from written_tables import write

Row = dict[str, Any]
NAMES = ("about_the_person", "question", "subject", "option_a", "option_b")
SHOWN = re.compile(rf"^<((?:{'|'.join(NAMES)})(?:-\d+)?)>\n(.*?)\n</\1>$", re.DOTALL | re.MULTILINE)
KINDS = {"prism": "preference", "opinion_qa": "opinion", "empathic": "authorship"}
RIGHT = "(theirs)"
SETS = {"age": ["key", "least-code"], "country": ["key", "key-code"], "religion": ["least"], "job": []}


def persona(**values: str | None) -> list[Row]:
    """Variables with their sentences; None is missing."""
    return [
        {
            "variable": name,
            "value": value,
            "number": None,
            "sentence": None if value is None else f"The {name} of this person is {value}.",
            "sets": SETS.get(name, []),
        }
        for name, value in values.items()
    ]


def item(task: str, number: int, truth: str = "A", **changes: Any) -> Row:
    """An item whose right option has the words of `RIGHT`, in a tie both."""
    options = {
        side: f"{side.upper()} {number} of {task}{f' {RIGHT}' if truth in {side.upper(), 'tie'} else ''}"
        for side in ("a", "b")
    }
    return {
        "id": f"{task}-{number}",
        "task": task,
        "kind": KINDS[task],
        "user": f"u{number % 5}",
        "persona": persona(age=f"{20 + number}", country="Norway", religion="none of yours", job=None),
        "context": f"Question {number} of {task}?",
        "option_a": options["a"],
        "option_b": options["b"],
        "truth": truth,
        "origin_a": "a1",
        "origin_b": "b1",
        "gap": None if task == "opinion_qa" else 12.5,
        "rank_calls": [],
    } | changes


def rows(task: str, number: int, *, ties: int = 0) -> list[Row]:
    """So many items, in turn A and B, and then ties."""
    plain = [item(task, place, "AB"[place % 2]) for place in range(number)]
    return [*plain, *(item(task, number + place, "tie") for place in range(ties))]


def release(folder: Path, **tasks: list[Row]) -> Path:
    """A directory with a table for each task."""
    for name, table in tasks.items():
        write(folder / f"{name}.jsonl", table)
    return folder


def shown(body: Mapping[str, Any]) -> dict[str, str]:
    """What a request shows, by the names of its marks without their numbers."""
    found = SHOWN.findall(body["messages"][-1]["content"])
    return {re.sub(r"-\d+$", "", name): text for name, text in found}


def knows(body: Mapping[str, Any]) -> str:
    """The letter of the right option of a request, C where both are."""
    right = [letter for letter in "ab" if RIGHT in shown(body)[f"option_{letter}"]]
    return "C" if len(right) == 2 else right[0].upper()
