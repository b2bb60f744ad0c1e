"""Items of a run with their texts, for reading: prompt, user, responses, scores and decisions.

A run contains no texts. They are read from its data again, and each is checked by its digest.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import read_ledger
from pluralbench_release import TablesError
from pluralbench_runs import plural
from pluralbench_runs.console import sanitize

from pluralbench.config import DataConfig
from pluralbench.data.column_types import CALLS
from pluralbench.data.credits import item_credits
from pluralbench.data.decisions import decisions_of
from pluralbench.data.items import Items, load_items
from pluralbench.data.layouts import layout_of
from pluralbench.data.layouts.shown import Replies, Row
from pluralbench.data.persona_items import PersonaItems, load_personas
from pluralbench.errors import DataError, RunError
from pluralbench.metrics.languages import ARE_LABELS, with_english_outcomes
from pluralbench.results.run_files import LEDGER_FILE
from pluralbench.results.runs import Downstream, Run

KEYS = ["config", "id", "digest"]
Key = tuple[str, str, str]
USER_CONTEXT = {
    "none": "The model read no user context.",
    "raw": "The model read the first {size} posts of the user.",
    "plan": "The model read a plan inferred from the user's posts, which the run does not contain.",
    "persona": "The model read a persona of the user, which the run does not contain.",
}
ORACLE = " It also read the rubric aspects ({})."
AS_DATA = " As data, it could also read {}."
PART = re.compile(r"(?:the )?(rubric|turn \d+) on ")  # label of a call without a verdict of its own
MOVED = " If the data has moved, give its location with `data=...`."
TEXT_KINDS = {"classifier", "implicit", "token", "pairwise", "generative"}
"""Kinds of models that read the user context only as text."""


class ItemTexts(NamedTuple):
    """Texts of a run's items.

    Attributes:
        items: Texts by id and by digest of prompt and responses.
        same: Whether the data is unchanged since the run.
    """

    items: dict[tuple[str, str], Row]
    place: str
    same: bool


def outcomes_of(run: Run) -> dict[str, int]:
    """Return the number of decisions of a run by outcome."""
    return dict(decisions_of(run.items)["outcome"].value_counts(sort=True).iter_rows())


def flipped(run: Run) -> list[Key]:
    """Return the items whose label (won, lost or tied) differs from that of the same item in English.

    M-RewardBench, section 5.2. Empty for a run without English.
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
    """Select items of a run, as config, id and digest; without a criterion all, in the order of the data.

    Of an `outcome`, the largest loss comes first; of the `closest`, the smallest margin.

    Raises:
        RunError: The run lacks an id, has no margins for `closest`, or has no items in English for `flips`.
    """
    decisions = decisions_of(run.items)
    if flips:
        if with_english_outcomes(run.config.benchmark.description, decisions).is_empty():
            raise RunError(f"{run.path} has no item with decisions in English and in another language.")
        return flipped(run)
    if ids:
        missing = [item for item in ids if item not in set(decisions["id"])]
        if missing:
            raise RunError(f"{run.path} has no item of id {missing[0]}; its first id is {decisions['id'][0]}.")
        decisions = decisions.filter(pl.col("id").is_in(ids))
    if outcome is not None:
        decisions = decisions.filter(outcome=outcome).sort("margin", nulls_last=True, maintain_order=True)
    if closest is not None:
        decisions = decisions.filter(pl.col("margin").is_not_null()).sort(pl.col("margin").abs(), maintain_order=True)
        if decisions.is_empty():
            raise RunError(f"{run.path} has no margins, because its judge compares responses without scores.")
    keys = decisions.select(KEYS).unique(maintain_order=True)
    return [(config, item, content) for config, item, content in keys.rows()[:closest]]


def examples(run: Run, keys: Sequence[Key], texts: ItemTexts) -> list[Row]:
    """Return items with their texts as plain JSON values.

    Returns:
        For each item `config`, `id`, `subset`, `outcomes` (number of decisions by outcome), `credit` (from 0 to 1;
        None if no decision counts), `prompt` (messages), `person`, `answers` and `decisions`, with all recorded replies
        of a judge. Items on which people voted have `votes`, the number of votes, and `groups`: the number of votes for
        each answer and for a tie, of all people and then of each group by attribute (None: not known). Items in other
        languages have `english`, the outcome of the same id in English.
    """
    missing = [key for key in keys if key[1:] not in texts.items]
    if missing:
        config, item, _ = missing[0]
        others = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise DataError(
            f"{texts.place} does not have the texts that {run.path} was made with (id {item} of {config}{others}); "
            "give the original data (`data=...`)."
        )
    wanted = pl.DataFrame(keys, schema=dict.fromkeys(KEYS, pl.String), orient="row")
    selected_rows = run.items.join(wanted, on=KEYS, how="semi", maintain_order="left")
    rows, decided = (
        frame.partition_by(KEYS, as_dict=True, maintain_order=True)
        for frame in (selected_rows, decisions_of(selected_rows))
    )
    replies = _replies(run, [rows[key] for key in keys])
    decisions = decisions_of(run.items)
    english = with_english_outcomes(run.config.benchmark.description, decisions)
    in_english: dict[Key, str] = {row[:3]: row[3] for row in english.select(*KEYS, "outcome_english").iter_rows()}
    credited = item_credits(run.config.benchmark.description, decisions)
    parts = credited.group_by("config", "id", "subset").agg(pl.col("credit").mean())
    credits_by_item: dict[tuple[Any, ...], float] = {row[:3]: row[3] for row in parts.iter_rows()}
    return [
        _example(run, texts.items[key[1:]], rows[key], decided[key], replies)
        | {"credit": credits_by_item.get((*key[:2], decided[key]["subset"][0]))}
        | ({"english": in_english[key]} if key in in_english else {})
        for key in keys
    ]


def question_of(messages: Sequence[Mapping[str, str]], limit: int) -> str:
    """Return the first words of the last user message; empty if there is none."""
    asked = [message["content"] for message in messages if message["role"] == "user"]
    # A long text is cut before its words are joined.
    words = " ".join(sanitize(asked[-1][: 4 * limit]).split()) if asked else ""
    return words if len(words) <= limit else f"{words[: limit - 1].rpartition(' ')[0] or words[: limit - 1]}…"


def read_texts(run: Run, data: str | None = None) -> ItemTexts:
    """Read the texts of a run's data again; see `reload_items`."""
    read = reload_items(run, data)
    items = {(row["id"], row["digest"]): row for row in read.frame.iter_rows(named=True)}
    return ItemTexts(items, data_location(run, data), read.digest == run.config.data.digest)


def data_location(run: Run | Downstream, data: str | None = None) -> str:
    """Return the location from which a run's data is read again."""
    return data or _at(run.config.data.location, run.config.data.revision)


def reload_items(run: Run | Downstream, data: str | None) -> Items | PersonaItems:
    """Read the items of a run's data again. They may have changed since the run.

    Raises:
        DataError: The data cannot be read.
    """
    record, place = run.config.data, data_location(run, data)
    # A file has a single config, named after the file.
    configs = () if data is not None and Path(data).is_file() else record.configs
    try:
        if run.verb == "judge-personas":
            return load_personas(place, configs=configs or None, split=record.split or "test")
        reference = record.reference
        english = None if reference is None else _at(reference.location, reference.revision)
        same = {name: getattr(record, name) for name in ("split", "limit", "items", "items_seed", "on_empty")}
        selection = DataConfig(location=place, configs=configs, english=english, **same)
        return load_items(run.config.benchmark.description, selection)
    except (DataError, TablesError) as error:
        raise DataError(f"{run.path} contains no texts, and its data cannot be read: {error}{MOVED}") from None


def reload_unchanged(run: Run | Downstream, data: str | None) -> Items | PersonaItems:
    """Read the items of a run's data again as `reload_items`; raises `DataError` if they have changed."""
    items = reload_items(run, data)
    if items.digest != run.config.data.digest:
        place = data_location(run, data)
        raise DataError(f"{place} has changed since {run.path} was made; give the original data (`data=...`).")
    return items


def _at(location: str, revision: str | None) -> str:
    return location if revision is None else f"{location}@{revision}"


def _replies(run: Run, parts: Iterable[pl.DataFrame]) -> Replies:
    """Return the replies of the calls in these rows by key: `outcome`, `text`, and what is known besides.

    `part` names a rubric or an earlier turn, which has no verdict. If several replies vote, `by` is the judge and the
    sample, and the last call of a reply has its `reason` if it cannot be read, else its `verdict` with the pair and the
    `first` response, or its `scores` by response.
    """
    columns = [part[name] for part in parts for name in part.columns if name.startswith("calls")]
    keys = {key for column in columns if column.dtype == CALLS for key in column.explode().drop_nulls()}
    if not keys:
        return {}
    calls = read_ledger(run.path / LEDGER_FILE).filter(pl.col("key").is_in(sorted(keys)))
    texts: dict[str, Row] = {}
    for row in calls.iter_rows(named=True):
        part = PART.match(row["label"])
        texts[row["key"]] = {"outcome": row["outcome"], "text": row["text"]} | ({"part": part[1]} if part else {})
    if run.votes is not None:
        one, several = len(run.votes.judges) == 1, run.votes.samples > 1
        for row in run.votes.replies.filter(pl.col("calls").list.last().is_in(sorted(texts))).iter_rows(named=True):
            by = ", ".join([*([] if one else [row["judge"]]), *([f"sample {row['sample'] + 1}"] if several else [])])
            for key in row["calls"]:
                texts[key]["by"] = by
            last = texts[row["calls"][-1]]
            if row["reason"] is not None:
                last["reason"] = row["reason"]
            elif "verdict" in row:
                last |= {name: row[name] for name in ("chosen", "rejected", "first", "verdict")}
            else:
                last.setdefault("scores", {})[row["response"]] = row["score"]
    return texts


def _example(run: Run, item: Row, rows: pl.DataFrame, decisions: pl.DataFrame, replies: Replies) -> Row:
    layout = layout_of(run.config.benchmark.description)
    shown = layout.show(item, rows, decisions, replies, run.config.judge_setting("variables"))
    return {
        "config": decisions["config"][0],
        "id": item["id"],
        "subset": decisions["subset"][0],
        "outcomes": dict(Counter(decisions["outcome"])),
        "prompt": shown.prompt,
        "person": _person(run, item) if shown.person is None else shown.person,
        "answers": shown.answers,
        "decisions": shown.decisions,
        **({"votes": len(item["annotations"]), "groups": _groups(run, item)} if item.get("annotations") else {}),
    }


def _groups(run: Run, item: Row) -> list[Row]:
    """Return the votes of all people and of each group: `attribute`, `group`, `votes` by answer, and `ties`."""
    described = run.config.benchmark.description.annotations
    answers = range(len(item["responses"]))
    groups: dict[tuple[str | None, str | None], Counter[int | None]] = {(None, None): Counter()}
    for vote in item["annotations"]:
        own = zip(described.attributes if described else (), vote["attributes"], strict=True)
        for key in ((None, None), *own):
            groups.setdefault(key, Counter())[vote["response"]] += 1
    order = ["", *(described.attributes if described else ())]
    keys = sorted(groups, key=lambda key: (order.index(key[0] or ""), key[1] is None, key[1] or ""))
    return [
        {
            "attribute": key[0],
            "group": key[1],
            "votes": [groups[key][one] for one in answers],
            "ties": groups[key][None],
        }
        for key in keys
    ]


def _person(run: Run, item: Row) -> Row:
    """Return posts and rubric aspects of the user, and what the model read of them."""
    posts = [{"category": post.get("category"), "text": post["text"]} for post in item["profile"] or []]
    aspects = [{"aspect": one["aspect"], "reason": one.get("reason")} for one in item["aspects"] or []]
    if not posts and not aspects and not item["earlier"]:
        return {}
    prompt, oracle = run.config.prompt, run.config.judge_setting("oracle")
    size = min(prompt.profile_size or 0, len(posts))
    sentences = USER_CONTEXT[prompt.profile or "none"].format(size=size) + (ORACLE.format(oracle) if oracle else "")
    return {"context": sentences + _data_sentence(run, item), "posts": posts, "aspects": aspects}


def _data_sentence(run: Run, item: Row) -> str:
    """Return what a model that takes user context as data could read besides the prompt; see `build_person`."""
    pairs = item["earlier"] or 0
    parts = [f"{plural(pairs, 'earlier decision')} of the user"] if pairs else []
    parts += ["the user's persona"] if run.config.prompt.profile == "raw" and item["persona"] else []
    return AS_DATA.format(" and ".join(parts)) if parts and run.result.model.kind not in TEXT_KINDS else ""
