"""Prompts with annotated responses, in the fields that CHEEMS published, and their resolution into ranks.

A row is a dictionary: `input`, `responses` [{`id`, `content`, ...}], `annotations` [[id, id, mark]], `category`, and
whatever else it came with. Resolved, it has `rank` {id: whole number, 1 is best}, `order` [[better, worse]] and
`counts`.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, progress
from pluralbench_tables import read_jsonl

from build_chinese.preferences import Mark, Resolved, resolve

Row = dict[str, Any]

MARKS: dict[str, Mark] = {"1": "1", "2": "2", "s": "s", "g": "1", "b": "2"}
ONE_RESPONSE, NOTHING_SAID = "fewer than two responses", "no annotation"
ALL_EQUAL = "all responses became equal"
DROPPED = pl.Schema({"input": pl.String, "reason": pl.String, "responses": pl.Int64, "judgements": pl.Int64})


class Fault(Exception):
    """What is wrong with a row, said so that `ROW: ...` reads as a sentence."""


def read_rankings(path: Path, *, annotated: bool = True) -> list[Row]:
    """The prompts of a JSONL file, checked; marks are "1", "2" or "s", rows of the same input merged into one.

    annotated: whether each row has to have `annotations`; if not, a row without them gets an empty list. A merged row
    has the responses and the annotations of all its rows; of the other keys it keeps those that all its rows have, with
    the value of the first.

    Raises `SourceError`, naming the row, for what is not of that shape, for an annotation of a response that the
    prompt does not have or of a response with itself, for an id with two texts, and for an empty category.
    """
    merged: dict[str, Row] = {}
    for number, given in enumerate(read_jsonl(path, SourceError), start=1):
        try:
            row = _checked(given, annotated=annotated)
            before = merged.get(row["input"])
            merged[row["input"]] = row if before is None else _merged(before, row)
        except Fault as fault:
            raise SourceError(f"{path}, row {number:,}: {fault}.") from None
    for row in merged.values():
        try:
            _check_annotations(row)
        except Fault as fault:
            raise SourceError(f"{path}: {fault}.") from None
    return list(merged.values())


def resolve_rows(rows: Sequence[Row]) -> tuple[list[Row], pl.DataFrame]:
    """The rows with `rank`, `order` and `counts`, and a table of those that say nothing, with the reason (`DROPPED`).

    counts: how many `judgements`, and how many of them are `conflicts`, each by "strict" and "equal" (see `Resolved`).
    A rank that a row had before is replaced. A response that no annotation names gets no rank.
    """
    kept, dropped = [], []
    with progress("resolving", len(rows)) as meter:
        for row in rows:
            found = resolve(row["annotations"])
            reason = _nothing(row, found)
            if reason:
                dropped.append((row["input"], reason, len(row["responses"]), len(row["annotations"])))
            else:
                kept.append(row | _resolved(found))
            meter.advance()
    return kept, pl.DataFrame(dropped, schema=DROPPED, orient="row")


def with_annotations(rows: Iterable[Row], marks: pl.DataFrame) -> list[Row]:
    """The rows with marks (`prompt`, `first`, `second`, `mark`) as their annotations, in the order of the marks."""
    by_prompt = marks.group_by("prompt", maintain_order=True).agg(pl.concat_list("first", "second", "mark"))
    annotations = dict(by_prompt.iter_rows())
    return [row | {"annotations": annotations.get(row["id"], [])} for row in rows]


def ranked_pairs(row: Row) -> list[tuple[str, str]]:
    """The (better, worse) ids of a resolved row that its annotations order, directly or by way of others."""
    return [(better, worse) for better, worse in row["order"]]


def published_pairs(row: Row, where: str) -> list[tuple[str, str]]:
    """The (better, worse) ids of a row as it was published: by its `rank`, or without one by its annotations.

    where: the file, for errors. Raises `SourceError` for a `rank` that does not give each response a whole number.
    """
    if row.get("rank") is None:
        strict = {(one, two) if mark == "1" else (two, one) for one, two, mark in row["annotations"] if mark != "s"}
        return sorted(strict)
    given = row["rank"]
    if isinstance(given, list):  # as a release has it
        given = {entry.get("id"): entry.get("rank") for entry in given if isinstance(entry, dict)}
    names = [response["id"] for response in row["responses"]]
    rank = {str(name): level for name, level in given.items()} if isinstance(given, dict) else {}
    for name in names:
        if type(rank.get(name)) is not int:
            raise SourceError(
                f"{where}: the prompt {row['input'].strip()[:30]!r} has no rank, a whole number, for the response "
                f"{name[:60]}; give each response one, or leave out `rank`."
            )
    return [(one, two) for one in names for two in names if rank[one] < rank[two]]


def prompt_id(text: str) -> str:
    """The id of a prompt that came without one: the beginning of its text's digest."""
    return digest(text)[:16]


def named(value: object) -> str:
    """An id as text, empty where there is none. Raises `Fault` for what is neither text nor a whole number."""
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Fault(f"the id {str(value)[:60]!r} is neither text nor a whole number")
    return str(value).strip()


def _resolved(found: Resolved) -> Row:
    return {
        "rank": found.rank,
        "order": [list(pair) for pair in sorted(found.order)],
        "counts": {
            "judgements": {"strict": found.strict, "equal": found.equal},
            "conflicts": {"strict": found.conflicts, "equal": 0},
        },
    }


def _nothing(row: Row, found: Resolved) -> str | None:
    if len(row["responses"]) < 2:
        return ONE_RESPONSE
    if not row["annotations"]:
        return NOTHING_SAID
    return ALL_EQUAL if len(set(found.rank.values())) < 2 else None


def _checked(given: Row, *, annotated: bool) -> Row:
    row = dict(given) if "answer1" not in given else _of_two(given)
    if "input" not in row and "prompt" in row:
        row["input"] = row.pop("prompt")
    text = row.get("input")
    if not isinstance(text, str) or not text.strip():
        raise Fault("it has no `input`")
    if not isinstance(row.get("sys_prompt"), str | None):
        raise Fault("its `sys_prompt` is no text")
    if "id" in row:
        row["id"] = named(row["id"]) or prompt_id(text)
    row["responses"] = _responses(row)
    if "category" in row:
        row["category"] = _category(row["category"])
    if "annotations" not in row and annotated:
        raise Fault("it has no `annotations`")
    by_text = {response["content"]: response["id"] for response in row["responses"]}
    entries = _list(row.get("annotations", []), "annotations")
    row["annotations"] = [_annotation(entry, by_text) for entry in entries]
    return row


def _of_two(given: Row) -> Row:
    """A flat row of two answers and a preference, which the published loader also takes, as any other."""
    answers = [given.get("answer1"), given.get("answer2")]
    if not all(isinstance(answer, str) for answer in answers):
        raise Fault("its `answer1` and `answer2` are no texts")
    responses = [{"id": prompt_id(str(answer)), "content": answer} for answer in answers]
    rest = {key: value for key, value in given.items() if key not in {"answer1", "answer2", "preference"}}
    annotation = [*(response["id"] for response in responses), given.get("preference")]
    return rest | {"responses": responses, "annotations": [annotation]}


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Fault(f"its `{name}` are no list")
    return value


def _responses(row: Row) -> list[Row]:
    found: dict[str, Row] = {}
    for response in _list(row.get("responses"), "responses"):
        if not isinstance(response, dict) or not isinstance(response.get("content"), str):
            raise Fault("a response is no object with an `id` and a `content`")
        name = named(response.get("id"))
        if not name:
            raise Fault("a response has no `id`")
        if name in found and found[name]["content"] != response["content"]:
            raise Fault(f"the id {name} is given to two responses")
        found.setdefault(name, response if response["id"] == name else response | {"id": name})
    return list(found.values())


def _category(value: object) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise Fault("its `category` is empty; name one, or leave the field out")
    return names


def _annotation(entry: object, by_text: Mapping[str, str]) -> list[str]:
    """An annotation as [first, second, mark]; the mark may be typed in full-width characters.

    Like the published loader it also takes an object with the texts of both answers. by_text: ids by these texts.
    """
    if isinstance(entry, dict):
        texts = [entry.get("answer1"), entry.get("answer2")]
        entry = [*(by_text.get(str(text), text) for text in texts), entry.get("preference")]
    if not isinstance(entry, list) or len(entry) != 3 or not all(isinstance(part, str | int) for part in entry):
        raise Fault(f"the annotation {str(entry)[:60]} is not [id, id, mark]")
    first, second, given = (str(part).strip() for part in entry)
    mark = MARKS.get(unicodedata.normalize("NFKC", given).lower())
    if mark is None:
        raise Fault(f"the annotation of {first} and {second} has the mark {given!r}, which is none of 1, 2 and s")
    kept = [first, second, mark]
    return entry if entry == kept else kept  # no second list for each of hundreds of thousands


def _check_annotations(row: Row) -> None:
    known = {response["id"] for response in row["responses"]}
    start = row["input"].strip()[:30]
    for first, second, _ in row["annotations"]:
        for name in (first, second):
            if name not in known:
                raise Fault(f"an annotation names the response {name[:60]}, which the prompt {start!r} does not have")
        if first == second:
            raise Fault(f"an annotation of the prompt {start!r} compares the response {first} with itself")


def _merged(before: Row, row: Row) -> Row:
    """Two rows of one input as one, as the published loader has it."""
    if "rank" in before and "rank" in row:
        raise Fault("its input was there before and both have a `rank`, so there are two; leave one out")
    responses = {response["id"]: response for response in before["responses"]}
    for response in row["responses"]:
        if responses.setdefault(response["id"], response)["content"] != response["content"]:
            raise Fault(f"the id {response['id']} is given to two responses")
    both = {key: value for key, value in before.items() if key in row}
    return both | {
        "responses": list(responses.values()),
        "annotations": before["annotations"] + row["annotations"],
    }
