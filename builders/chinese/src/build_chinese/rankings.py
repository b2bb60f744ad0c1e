"""Read prompts with annotated responses in the fields that CHEEMS published, and resolve them into ranks.

A row is a dictionary: `input`, `responses` [{`id`, `content`, ...}], `annotations` [[id, id, mark]], `category`, and
other keys of the file. A resolved row also has `rank` {id: integer, 1 is best}, `order` [[better, worse]] and `counts`.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, progress
from pluralbench_tables import read_jsonl

Mark = Literal["1", "2", "s"]
Judgment = tuple[str, str, Mark]
"""(first, second, mark): ids of two responses and which is better: "1" the first, "2" the second, "s" neither."""


@dataclass(frozen=True)
class Resolved:
    """The ranking of a prompt's responses, and its conflicts with the judgments.

    Attributes:
        rank: Rank by response id, 1 is best. Equal responses share a rank, and ranks have no gaps. Responses without a
            judgment have no rank.
        order: Pairs (better, worse) that the judgments order, directly or transitively. Two responses of different rank
            that no judgments connect are not in it.
        strict: Number of judgments that prefer one response.
        equal: Number of ties.
        conflicts: Number of strict judgments on two responses that share a rank. The ranking contradicts no other
            judgment: tied responses lie on a cycle, and an edge never leads to a better rank.
    """

    rank: dict[str, int]
    order: frozenset[tuple[str, str]]
    strict: int
    equal: int
    conflicts: int


def resolve(judgments: Iterable[Judgment]) -> Resolved:
    """Resolve the judgments of one prompt. Without judgments the ranking is empty."""
    judgments = list(judgments)
    graph = nx.DiGraph()
    for first, second, mark in judgments:
        graph.add_nodes_from((first, second))
        if mark != "2":
            graph.add_edge(first, second)
        if mark != "1":
            graph.add_edge(second, first)
    condensed = nx.condensation(graph)
    members: Mapping[int, set[str]] = condensed.nodes.data("members")
    rank = {
        response: level
        for level, layer in enumerate(nx.topological_generations(condensed), start=1)
        for component in layer
        for response in members[component]
    }
    strict = [rank[first] == rank[second] for first, second, mark in judgments if mark != "s"]
    order = frozenset(
        (better, worse)
        for component in condensed
        for lower in nx.descendants(condensed, component)
        for better in members[component]
        for worse in members[lower]
    )
    return Resolved(dict(sorted(rank.items())), order, len(strict), len(judgments) - len(strict), sum(strict))


Row = dict[str, Any]
VOTE = ("annotator", "first", "second", "vote")
"""Fields of a vote of a row: a judgment of an annotator on two responses."""

READ_AS: dict[str, Mark] = {"1": "1", "2": "2", "s": "s", "g": "1", "b": "2"}
ONE_RESPONSE, NO_ANNOTATION = "fewer than two responses", "no annotation"
ALL_EQUAL = "all responses became equal"
DROPPED = pl.Schema({"input": pl.String, "reason": pl.String, "responses": pl.Int64, "judgements": pl.Int64})


class RowError(Exception):
    """A problem of a row, to be completed with its place: `PLACE: PROBLEM.`."""


def read_rankings(path: Path, *, annotated: bool = True) -> list[Row]:
    """Read and check the prompts of a JSONL file. Unless `annotated`, rows need no annotations.

    Marks become "1", "2" or "s". Rows with the same input are merged: responses and annotations of all rows, and of the
    other keys those that all rows have, with the first row's value.

    Raises:
        SourceError: A row is malformed, an annotation names an unknown response or compares a response with itself, an
            id has two texts, or a category is empty.
    """
    merged: dict[str, Row] = {}
    for number, line in enumerate(read_jsonl(path, SourceError), start=1):
        try:
            row = _check_row(line, annotated=annotated)
            earlier = merged.get(row["input"])
            merged[row["input"]] = row if earlier is None else _merge(earlier, row)
        except RowError as error:
            raise SourceError(f"{path}, row {number:,}: {error}.") from None
    for row in merged.values():
        try:
            _check_annotations(row)
        except RowError as error:
            raise SourceError(f"{path}: {error}.") from None
    return list(merged.values())


def resolve_rows(rows: Sequence[Row]) -> tuple[list[Row], pl.DataFrame]:
    """Resolve the annotations of each row into ranks, which replace those of the input.

    Returns:
        The rows with `rank`, `order` and `counts`; and the dropped rows with reasons (columns of `DROPPED`). `counts`
        has the numbers of `judgements` and of `conflicts` among them, each by "strict" and "equal" (see `Resolved`).
    """
    ranked, dropped = [], []
    with progress("resolving", len(rows)) as meter:
        for row in rows:
            resolved = resolve(row["annotations"])
            reason = _drop_reason(row, resolved)
            if reason:
                dropped.append((row["input"], reason, len(row["responses"]), len(row["annotations"])))
            else:
                ranked.append(row | _rank_fields(resolved))
            meter.advance()
    return ranked, pl.DataFrame(dropped, schema=DROPPED, orient="row")


def with_annotations(rows: Iterable[Row], marks: pl.DataFrame) -> list[Row]:
    """Set the annotations of rows to marks (`prompt`, `first`, `second`, `mark`), in the order of the marks."""
    by_prompt = marks.group_by("prompt", maintain_order=True).agg(pl.concat_list("first", "second", "mark"))
    annotations = dict(by_prompt.iter_rows())
    return [row | {"annotations": annotations.get(row["id"], [])} for row in rows]


def with_votes(rows: Iterable[Row], marks: pl.DataFrame) -> list[Row]:
    """Set the votes of rows from marks: the first of each annotator on each pair of responses, sorted by annotator."""
    pair = pl.concat_list("first", "second").list.sort()
    once = marks.with_columns(pair=pair).unique(["prompt", "annotator", "pair"], keep="first", maintain_order=True)
    votes: dict[str, list[Row]] = {}
    for prompt, *vote in once.sort(*VOTE[:3]).select("prompt", *VOTE[:3], "mark").iter_rows():
        votes.setdefault(prompt, []).append(dict(zip(VOTE, vote, strict=True)))
    return [row | {"votes": votes.get(row["id"], [])} for row in rows]


def number_annotators(rows: Sequence[Row]) -> list[Row]:
    """Replace the names of annotators in votes by numbers, in the order of the names."""
    names = sorted({vote["annotator"] for row in rows for vote in row.get("votes", [])})
    numbers = {name: f"annotator-{place:0{len(str(len(names)))}}" for place, name in enumerate(names, start=1)}
    return [
        row | {"votes": [vote | {"annotator": numbers[vote["annotator"]]} for vote in row.get("votes", [])]}
        for row in rows
    ]


def preferred_pairs(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the (better, worse) ids of a row's annotations, without ties."""
    return [(a, b) if mark == "1" else (b, a) for a, b, mark in row["annotations"] if mark != "s"]


def ranked_pairs(row: Row) -> list[tuple[str, str]]:
    """Return the (better, worse) ids that a resolved row's annotations order, directly or transitively."""
    return [(better, worse) for better, worse in row["order"]]


def published_pairs(row: Row, where: str) -> list[tuple[str, str]]:
    """Return the (better, worse) ids of a published row: by `rank` if it has one, else by its annotations.

    A response without a rank is in no pair. `where`: the file, for errors.

    Raises:
        SourceError: `rank` names none of the responses, or has a rank that is not an integer.
    """
    if row.get("rank") is None:
        return sorted(set(preferred_pairs(row)))
    value = row["rank"]
    if isinstance(value, list):  # the format of a release
        value = {entry.get("id"): entry.get("rank") for entry in value if isinstance(entry, dict)}
    names = [response["id"] for response in row["responses"]]
    rank = {str(name): level for name, level in value.items()} if isinstance(value, dict) else {}
    ranked = [name for name in names if name in rank]
    wrong = next((name for name in ranked or names if type(rank.get(name)) is not int), None)
    if wrong is not None:
        raise SourceError(
            f"{where}: the prompt {row['input'].strip()[:30]!r} has no integer rank for the response {wrong[:60]}; "
            "correct `rank`, or remove it."
        )
    return [(a, b) for a in ranked for b in ranked if rank[a] < rank[b]]


def prompt_id(text: str) -> str:
    """Make an id for a prompt without one: the beginning of its text's digest."""
    return digest(text)[:16]


def parse_id(value: object) -> str:
    """Convert an id to text, empty for None. Raises `RowError` for a value that is neither text nor an integer."""
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise RowError(f"the id {str(value)[:60]!r} is neither text nor an integer")
    return str(value).strip()


def _rank_fields(resolved: Resolved) -> Row:
    return {
        "rank": resolved.rank,
        "order": [list(pair) for pair in sorted(resolved.order)],
        "counts": {
            "judgements": {"strict": resolved.strict, "equal": resolved.equal},
            "conflicts": {"strict": resolved.conflicts, "equal": 0},
        },
    }


def _drop_reason(row: Row, resolved: Resolved) -> str | None:
    if len(row["responses"]) < 2:
        return ONE_RESPONSE
    if not row["annotations"]:
        return NO_ANNOTATION
    return ALL_EQUAL if len(set(resolved.rank.values())) < 2 else None


def check_prompt(line: Row) -> Row:
    """Return a row with its `input`, and `id` and `category` if it has them, checked. Raises `RowError`."""
    row = dict(line)
    if "input" not in row and "prompt" in row:
        row["input"] = row.pop("prompt")
    text = row.get("input")
    if not isinstance(text, str) or not text.strip():
        raise RowError("`input` is missing or empty")
    if not isinstance(row.get("sys_prompt"), str | None):
        raise RowError("`sys_prompt` is not text")
    if "id" in row:
        row["id"] = parse_id(row["id"]) or prompt_id(text)
    if "category" in row:
        row["category"] = _category(row["category"])
    return row


def _check_row(line: Row, *, annotated: bool) -> Row:
    row = check_prompt(line)
    row["responses"] = _responses(row)
    if "annotations" not in row and annotated:
        raise RowError("`annotations` is missing")
    row["annotations"] = list(map(_annotation, _list(row.get("annotations", []), "annotations")))
    if "votes" in row:
        row["votes"] = sorted(map(_vote, _list(row["votes"], "votes")), key=itemgetter(*VOTE))
    return row


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise RowError(f"`{name}` is not a list")
    return value


def _responses(row: Row) -> list[Row]:
    responses: dict[str, Row] = {}
    for response in _list(row.get("responses"), "responses"):
        if not isinstance(response, dict) or not isinstance(response.get("content"), str):
            raise RowError("a response is not an object with `id` and `content`")
        name = parse_id(response.get("id"))
        if not name:
            raise RowError("a response has no `id`")
        if name in responses and responses[name]["content"] != response["content"]:
            raise RowError(f"two responses have the id {name}")
        responses.setdefault(name, response if response["id"] == name else response | {"id": name})
    return list(responses.values())


def _category(value: object) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise RowError("`category` is empty; name a main category")
    return names


def _annotation(entry: object) -> list[str]:
    """Parse an annotation into [first, second, mark]; the mark may have full-width characters."""
    if not isinstance(entry, list) or len(entry) != 3 or not all(isinstance(part, str | int) for part in entry):
        raise RowError(f"the annotation {str(entry)[:60]} is not [id, id, mark]")
    first, second, text = (str(part).strip() for part in entry)
    mark = READ_AS.get(unicodedata.normalize("NFKC", text).lower())
    if mark is None:
        raise RowError(f"the annotation of {first} and {second} has the mark {text!r}, which is not 1, 2 or s")
    parsed = [first, second, mark]
    return entry if entry == parsed else parsed  # saves a second list for each of hundreds of thousands


def _vote(entry: object) -> dict[str, str]:
    if not isinstance(entry, dict) or not isinstance(entry.get("annotator"), str) or not entry["annotator"].strip():
        raise RowError(f"the vote {str(entry)[:60]} is not an object with {', '.join(VOTE)}")
    return dict(zip(VOTE, [entry["annotator"], *_annotation([entry.get(name) for name in VOTE[1:]])], strict=True))


def _check_annotations(row: Row) -> None:
    ids = {response["id"] for response in row["responses"]}
    start = row["input"].strip()[:30]
    for first, second, _ in row["annotations"]:
        for name in (first, second):
            if name not in ids:
                raise RowError(
                    f"an annotation names the response {name[:60]}, which the prompt {start!r} does not have"
                )
        if first == second:
            raise RowError(f"an annotation of the prompt {start!r} compares the response {first} with itself")
    seen: set[tuple[str, frozenset[str]]] = set()
    for vote in row.get("votes", []):
        pair = frozenset((vote["first"], vote["second"]))
        if len(pair) < 2 or not pair <= ids:
            raise RowError(f"a vote of the prompt {start!r} is not on two of its responses: {', '.join(sorted(pair))}")
        if (vote["annotator"], pair) in seen:
            both = " and ".join(sorted(pair))
            raise RowError(f"{vote['annotator']} votes twice on {both} of the prompt {start!r}; keep one vote")
        seen.add((vote["annotator"], pair))


def _merge(earlier: Row, row: Row) -> Row:
    """Merge two rows of one input, as the published loader does."""
    if "rank" in earlier and "rank" in row:
        raise RowError("an earlier row has the same input, and both have a `rank`; remove one")
    responses = {response["id"]: response for response in earlier["responses"]}
    for response in row["responses"]:
        if responses.setdefault(response["id"], response)["content"] != response["content"]:
            raise RowError(f"an earlier row has the same input, and another response {response['id']}; rename one")
    both = {key: value for key, value in earlier.items() if key in row}
    joined = {name: earlier.get(name, []) + row.get(name, []) for name in ("annotations", "votes")}
    return both | {"responses": list(responses.values())} | {name: own for name, own in joined.items() if own}
