"""Items of a run with their texts: what was asked, by whom, the answers, and what was made of them.

A run keeps no texts, which are others' and many; they are read from its data again, and each is checked by its digest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import read_ledger
from pluralbench_release import TablesError

from pluralbench.config import DataConfig
from pluralbench.data.items import Items, load_items
from pluralbench.data.persona_items import PersonaItemSet, load_personas
from pluralbench.data.persona_prompts import persona_sentences
from pluralbench.errors import DataError, RunError
from pluralbench.metrics.languages import ARE_LABELS, with_english_outcomes
from pluralbench.results.columns import CALLS
from pluralbench.results.decisions import decisions_of
from pluralbench.results.runs import LEDGER_FILE, Downstream, Run

KEYS = ["config", "id", "digest"]
Key = tuple[str, str, str]
Row = dict[str, Any]
TOLD = {
    "none": "The model was told nothing of the person.",
    "raw": "The model was told the first {size} posts.",
    "plan": "The model was told what a planner inferred of the person, which the run does not keep.",
    "persona": "The model was told a persona of the person, which the run does not keep.",
}
TOLD_TOO = " It was shown the rubric aspects ({}), too."
AS_DATA = " As data it could also read {}."
OF_TEXT = {"classifier", "implicit", "generative"}
"""The kinds of models that read text alone, and nothing of the person as data."""


class ItemTexts(NamedTuple):
    """The texts of a run's items, by id and digest of prompt and answers. same: whether all the data is as it was."""

    items: dict[tuple[str, str], Row]
    place: str
    same: bool


def outcomes_of(run: Run) -> dict[str, int]:
    """How many decisions of the run had each outcome."""
    return dict(decisions_of(run.items)["outcome"].value_counts(sort=True).iter_rows())


def flipped(run: Run) -> list[Key]:
    """The items whose label (won, lost or tied) is another than that of the same item in English.

    M-RewardBench, section 5.2. None of a run without English.
    """
    both = with_english_outcomes(run.config.benchmark.description, decisions_of(run.items))
    other = both.filter(ARE_LABELS, pl.col("outcome") != pl.col("outcome_english"))
    return [(config, item, content) for config, item, content in other.select(KEYS).unique(maintain_order=True).rows()]


def selected(
    run: Run,
    *,
    ids: Sequence[str] = (),
    outcome: str | None = None,
    flips: bool = False,
    closest: int | None = None,
) -> list[Key]:
    """The items of a run that are asked for, without any wish all of them, in the order of the data.

    ids: these alone. outcome: those with a decision of this outcome, the largest loss first. flips: see `flipped`.
    closest: so many, those whose answers the scores tell apart least first. Raises `RunError` for an id that the run
    has not, and for a run without margins, or without items in English.
    """
    decisions = decisions_of(run.items)
    if flips:
        if with_english_outcomes(run.config.benchmark.description, decisions).is_empty():
            raise RunError(f"{run.path} has no item that was decided in English and in another language.")
        return flipped(run)
    if ids:
        missing = [one for one in ids if one not in set(decisions["id"])]
        if missing:
            raise RunError(f"{run.path} has no item of id {missing[0]}; its first is {decisions['id'][0]}.")
        decisions = decisions.filter(pl.col("id").is_in(ids))
    if outcome is not None:
        decisions = decisions.filter(outcome=outcome).sort("margin", nulls_last=True, maintain_order=True)
    if closest is not None:
        decisions = decisions.filter(pl.col("margin").is_not_null()).sort(pl.col("margin").abs(), maintain_order=True)
        if decisions.is_empty():
            raise RunError(f"{run.path} has no margins, since a judge that compares gives no scores.")
    found = decisions.select(KEYS).unique(maintain_order=True)
    return [(config, item, content) for config, item, content in found.rows()[:closest]]


def examples(run: Run, keys: Sequence[Key], texts: ItemTexts) -> list[Row]:
    """Items with their texts, each as plain values that JSON takes.

    Each has `config`, `id`, `subset`, `outcomes` (how many decisions had which), `prompt` (messages), `person`,
    `answers` and `decisions`; a judge's replies stand with what they are about, all tries as they came. One in another
    language has `english`, the outcome of the same id in English. Raises `DataError` where the texts are not those that
    the run was made with.
    """
    gone = [key for key in keys if key[1:] not in texts.items]
    if gone:
        config, item, _ = gone[0]
        others = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
        raise DataError(
            f"{texts.place} does not have the texts that {run.path} was made with (id {item} of {config}{others}); "
            "give the data as it was with --data."
        )
    asked = run.items.join(
        pl.DataFrame(keys, schema=dict.fromkeys(KEYS, pl.String), orient="row"),
        on=KEYS,
        how="semi",
        maintain_order="left",
    )
    rows, decided = (
        frame.partition_by(KEYS, as_dict=True, maintain_order=True) for frame in (asked, decisions_of(asked))
    )
    replies = _replies(run, [rows[key] for key in keys])
    make = _persona_example if run.verb == "judge-personas" else _example
    english = with_english_outcomes(run.config.benchmark.description, decisions_of(run.items))
    in_english: dict[Key, str] = {row[:3]: row[3] for row in english.select(*KEYS, "outcome_english").iter_rows()}
    return [
        make(run, texts.items[key[1:]], rows[key], decided[key], replies)
        | ({"english": in_english[key]} if key in in_english else {})
        for key in keys
    ]


def read_texts(run: Run, data: str | None = None) -> ItemTexts:
    """The texts of a run's data, read again; see `reload_items`."""
    read = reload_items(run, data, "pluralbench show RUN --data PLACE")
    items = {(row["id"], row["digest"]): row for row in read.frame.iter_rows(named=True)}
    return ItemTexts(items, data_location(run, data), read.digest == run.config.data.digest)


def data_location(run: Run | Downstream, data: str | None = None) -> str:
    """Where a run's data is read again."""
    return data or _at(run.config.data.location, run.config.data.revision)


def reload_items(run: Run | Downstream, data: str | None, command: str) -> Items | PersonaItemSet:
    """The items of a run's data, which may have changed since.

    data: where it is now, if it is not where the run found it. command: one that takes such a place. Raises `DataError`
    for data that cannot be read.
    """
    record, place = run.config.data, data_location(run, data)
    # A file has one config, which goes by its own name.
    configs = () if data is not None and Path(data).is_file() else record.configs
    try:
        if run.verb == "judge-personas":
            return load_personas(place, configs=configs or None, split=record.split or "test")
        reference = record.reference
        asked = DataConfig.model_validate(
            {
                "location": place,
                "configs": configs,
                "split": record.split,
                "limit": record.limit,
                "on_empty": record.on_empty,
                "english": None if reference is None else _at(reference.location, reference.revision),
            }
        )
        return load_items(run.config.benchmark.description, asked)
    except (DataError, TablesError) as error:
        raise DataError(
            f"A run keeps no texts, so those of {run.path} are read from its data again, which failed: {error} "
            f"`{command}` takes them from where they are now."
        ) from None


def _at(location: str, revision: str | None) -> str:
    return location if revision is None else f"{location}@{revision}"


def _replies(run: Run, parts: Iterable[pl.DataFrame]) -> dict[str, Row]:
    """What came back for the calls that these rows name."""
    keys = {
        key
        for part in parts
        for name in part.columns
        if name.startswith("calls") and part.schema[name] == CALLS
        for calls in part[name].drop_nulls()
        for key in calls
    }
    if not keys:
        return {}
    found = read_ledger(run.path / LEDGER_FILE).filter(pl.col("key").is_in(sorted(keys)))
    return {row["key"]: {"outcome": row["outcome"], "text": row["text"]} for row in found.iter_rows(named=True)}


def _said(row: Mapping[str, Any], column: str, replies: Mapping[str, Row]) -> dict[str, Any]:
    """The replies that a column of calls names, where the row has them."""
    return {"replies": [replies[key] for key in row[column]]} if row.get(column) else {}


def _common(item: Row, decided: pl.DataFrame) -> Row:
    first = decided.row(0, named=True)
    outcomes = Counter(decided["outcome"])
    return {"config": first["config"], "id": item["id"], "subset": first["subset"], "outcomes": dict(outcomes)}


def _example(run: Run, item: Row, rows: pl.DataFrame, decided: pl.DataFrame, replies: Mapping[str, Row]) -> Row:
    responses = zip(item["response_ids"], item["rank"], item["responses"], strict=True)
    answers = [
        {"name": name, "rank": rank, "text": text} | _scored(rows, name, place, replies)
        for place, (name, rank, text) in enumerate(responses)
    ]
    return _common(item, decided) | {
        "prompt": item["prompt"],
        "person": _person(run, item),
        "answers": answers,
        "decisions": [_decision(row, replies) for row in decided.iter_rows(named=True)],
    }


def _scored(rows: pl.DataFrame, name: str, place: int, replies: Mapping[str, Row]) -> Row:
    """The score of an answer, and the judge's rating behind it where it is one."""
    if "response" in rows.columns:
        row = rows.row(place, named=True)
        return {"score": _finite(row["score"])} | _said(row, "calls", replies)
    row = rows.row(0, named=True)
    score = {"score": _finite(row[f"score_{name}"])} if f"score_{name}" in row else {}
    return score | _said(row, f"calls_{name}", replies)


def _finite(score: float | None) -> float | None:
    return score if score is not None and isfinite(score) else None


def _decision(row: Row, replies: Mapping[str, Row]) -> Row:
    """What came of a pair: by scores its margin, by verdicts what was said in each order."""
    kept = ("chosen", "rejected", "outcome", "margin", "verdict", "reason")
    orders = [
        {"first": row[side], "verdict": row[f"verdict_{side}_first"]} | _said(row, f"calls_{side}_first", replies)
        for side in ("chosen", "rejected")
        if row.get(f"verdict_{side}_first") is not None
    ]
    return {name: row[name] for name in kept if row.get(name) is not None} | ({"orders": orders} if orders else {})


def _person(run: Run, item: Row) -> Row:
    """Who asked, where the benchmark says so, and what the model was told of it."""
    posts = [{"category": post.get("category"), "text": post["text"]} for post in item["profile"] or []]
    aspects = [{"aspect": one["aspect"], "reason": one.get("reason")} for one in item["aspects"] or []]
    if not posts and not aspects and not item["earlier"]:
        return {}
    prompt, oracle = run.config.prompt, run.config.judge_setting("oracle")
    size = min(prompt.profile_size or 0, len(posts))
    told = TOLD[prompt.profile or "none"].format(size=size) + (TOLD_TOO.format(oracle) if oracle else "")
    return {"told": told + _told_as_data(run, item), "posts": posts, "aspects": aspects}


def _told_as_data(run: Run, item: Row) -> str:
    """What a model that takes the person as data could read beside what the prompt tells; see `build_person`."""
    pairs = item["earlier"] or 0
    known = [f"{pairs:,} pair{'s' * (pairs > 1)} that the person decided before"] if pairs else []
    known += ["the person's persona"] if run.config.prompt.profile == "raw" and item["persona"] else []
    return AS_DATA.format(" and ".join(known)) if known and run.result.model.kind not in OF_TEXT else ""


def _persona_example(run: Run, item: Row, rows: pl.DataFrame, decided: pl.DataFrame, replies: Mapping[str, Row]) -> Row:
    row = rows.row(0, named=True)
    kept = ("outcome", "truth", "verdict", "certainty", "reason")
    orders = [
        {"first": first, "verdict": row[said]} | _said(row, calls, replies)
        for first, said, calls in (("A", "said", "calls"), ("B", "said_swapped", "calls_swapped"))
        if row[said] is not None
    ]
    variables = run.config.judge_setting("variables")
    told = persona_sentences(item, variables or "all")
    untold = [entry["sentence"] for entry in item["persona"] if entry["sentence"] and entry["sentence"] not in told]
    return _common(item, decided) | {
        "prompt": [{"role": "user", "content": item["context"]}] if item["context"].strip() else [],
        "person": {"told": f"The judge was told these variables: {variables}.", "persona": told, "untold": untold},
        "answers": [{"name": side, "text": item[f"option_{side.lower()}"]} for side in ("A", "B")],
        "decisions": [{name: row[name] for name in kept if row[name] is not None} | {"orders": orders}],
    }
