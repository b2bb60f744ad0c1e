"""Figures of a build: conflict rates, biases of annotators and judges, and dropped prompts and votes by reason."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.agreement import clustered_share, share_of
from pluralbench_measures.annotators import agreement_of_two, agreement_with_others, count_votes
from pluralbench_release import count_by, share_text, text_table
from pluralbench_schemas.chinese import MARKS

from build_chinese.audit import audit_tables
from build_chinese.lengths import (
    LENGTHS,
    SIZES,
    length_figures,
    length_table,
    part_name,
    size_figures,
    size_table,
    strict_marks,
)
from build_chinese.preference_set import JudgedPart
from build_chinese.rankings import Row, published_pairs, resolve, with_annotations
from build_chinese.source import JUDGE_PROMPTS

PEOPLE = "people"
AGREEMENT = "How far annotators agree (95 % intervals over prompts)"
JUDGES = "Conflict rate, and how often the longer or the first response wins (95 % intervals)"


def annotator_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Compute the consistency and the biases of annotations, in the order in which two responses were shown.

    Returns:
        Counts and shares. `conflicts`: annotations that contradict the ranks, including those of dropped prompts (table
        5; the paper does not state how it counts ties). `longer` and `first`: how often the preferred response is the
        longer one (in characters, pairs of equal length excluded) and the one shown first.
    """
    strict = strict_marks(rows)
    judgements = sum(len(row["annotations"]) for row in rows)
    longer = [(difference > 0) == first for difference, first in strict if difference]
    return {
        "prompts": len(rows),
        "judgements": judgements,
        "equal": judgements - len(strict),
        "conflicts": share_of(sum(resolve(row["annotations"]).conflicts for row in rows), judgements),
        "longer": share_of(sum(longer), len(longer)),
        "first": share_of(sum(first for _, first in strict), len(strict)),
        "by_length": length_figures(strict),
    }


def vote_conflicts(rows: Sequence[Row]) -> dict[str, Any]:
    """Compare the original votes of all annotators with the ranks (CHEEMS, table 5: the original annotation results).

    Returns:
        `conflicts`: share of the votes on two ranked responses that the ranks contradict: a preference for a response
        that is not better, or a tie of two that are not equal. `open`: number of pairs of responses with votes and
        without a judgment, because their annotators differ.
    """
    kept, open_pairs = list[bool](), 0
    for row in rows:
        rank = resolve(row["annotations"]).rank
        votes = row.get("votes", [])
        voted = {frozenset((vote["first"], vote["second"])) for vote in votes}
        open_pairs += len(voted - {frozenset(judgment[:2]) for judgment in row["annotations"]})
        for vote in votes:
            if vote["first"] in rank and vote["second"] in rank:
                difference = rank[vote["second"]] - rank[vote["first"]]
                kept.append({"1": difference > 0, "2": difference < 0, "s": difference == 0}[vote["vote"]])
    return {"conflicts": share_of(kept.count(False), len(kept)), "open": open_pairs}


def vote_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Compute how far annotators agree, and so how far a reward model can agree with one of them.

    Returns:
        Numbers of `annotators`, `votes`, and `pairs` with two votes or more. Of the votes on these pairs, `two` is the
        mean share of the other votes that are the same, and `others` the share that are the most frequent of the others
        (1 / k if k answers are); both with 95 % intervals over prompts. A tie is an answer of its own.
    """
    votes = [(row["id"], vote) for row in rows for vote in row.get("votes", [])]
    keys = [(prompt, *sorted((vote["first"], vote["second"]))) for prompt, vote in votes]
    items = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    answers = [(items[key], _answer(vote)) for key, (_, vote) in zip(keys, votes, strict=True)]
    item, answer = np.array(answers, np.int64).reshape(-1, 2).T
    counts = count_votes(item, answer, (len(items), len(MARKS)))
    several = counts.sum(1) > 1
    prompts = np.array([prompt for prompt, *_ in items], dtype=np.str_)[several]
    cluster = np.unique(prompts, return_inverse=True)[1]
    figures: dict[str, Any] = {
        "annotators": len({vote["annotator"] for _, vote in votes}),
        "votes": len(votes),
        "pairs": int(several.sum()),
    }
    for name, agreement in (("two", agreement_of_two), ("others", agreement_with_others)):
        agreeing = (counts * np.nan_to_num(agreement(counts))).sum(1)[several]
        figures[name] = clustered_share(
            *(np.bincount(cluster, values).tolist() for values in (agreeing, counts[several].sum(1)))
        )
    return figures


def _answer(vote: Mapping[str, str]) -> int:
    """The place of a vote's answer among the pair's: the response whose id sorts first, the other one, a tie."""
    if vote["vote"] == "s":
        return 2
    return int((vote["first"] < vote["second"]) == (vote["vote"] == "2"))


def figures_of(people: Mapping[str, Sequence[Row]], dropped: pl.DataFrame, judged: JudgedPart | None) -> dict[str, Any]:
    """Compute the figures of a release, JSON, from annotated and dropped rows and the judge's part."""
    figures: dict[str, Any] = {
        "annotators": [
            {"annotator": PEOPLE, "config": config} | annotator_figures(rows) for config, rows in people.items() if rows
        ],
        "votes": [
            {"config": config} | agreeing
            for config, rows in people.items()
            if (agreeing := vote_figures(rows))["pairs"]
        ],
        "dropped": _count_reasons(dropped, PEOPLE),
        "preference": None,
    }
    if judged is not None:
        preferences, rows = judged.preferences, with_annotations(judged.rows, judged.votes.drop_nulls("mark"))
        cut = 0 if judged.rewards is None else judged.rewards.filter(pl.col("cut") > 0).height
        figures["annotators"].append({"annotator": judged.judge, "config": "preference"} | annotator_figures(rows))
        figures["dropped"] += _count_reasons(preferences.dropped, judged.judge)
        pairs = annotator_figures(preferences.rows)
        figures["preference"] = {
            "prompt_version": JUDGE_PROMPTS["version"],
            "votes_dropped": preferences.votes,
            "steps": preferences.steps,
            "longer": pairs["longer"],
            "responses_cut_for_the_reward_model": cut,
        }
    return figures


def file_figures(files: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Compute the figures of tables 1 and 5 and figure 15 of the paper for rows by file, for `figures_tables`.

    If all marks of a file are "1", the better response is always written first, so the share of `first` is left empty.

    Raises:
        SourceError: A rank is invalid.
    """
    sizes = [
        {"annotator": "", "config": name} | size_figures(rows, [published_pairs(row, name) for row in rows])
        for name, rows in files.items()
    ]
    annotators = [
        {"annotator": "", "config": name} | annotator_figures(rows)
        for name, rows in files.items()
        if any(row["annotations"] for row in rows)
    ]
    for entry in annotators:
        if entry["first"]["count"] == entry["first"]["of"]:
            entry["first"] = share_of(0, 0)
    return {"sizes": sizes, "annotators": annotators, "dropped": [], "preference": None}


def figures_tables(figures: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Format the figures as tables by title, for the card and the terminal."""
    tables: dict[str, pl.DataFrame] = {}
    annotators = figures["annotators"]
    if figures.get("sizes"):
        tables[SIZES] = size_table(figures["sizes"])
    names = ["config", "prompts", "marks", "equal", "conflicts", "longer wins", "first wins"]
    counts, shares = ("prompts", "judgements", "equal"), ("conflicts", "longer", "first")
    rows = [
        [part_name(entry), *(entry[name] for name in counts), *(format_share(entry[name]) for name in shares)]
        for entry in annotators
    ]
    tables[JUDGES] = text_table(names, rows)
    if annotators:
        tables[LENGTHS] = length_table(annotators)
    if figures.get("votes"):
        names = ["config", "annotators", "votes", "pairs with several", "one with the others", "two at random"]
        counts = ("annotators", "votes", "pairs")
        tables[AGREEMENT] = text_table(
            names,
            [
                [entry["config"], *(entry[name] for name in counts)]
                + [format_share(entry[name]) for name in ("others", "two")]
                for entry in figures["votes"]
            ],
        )
    preference = figures["preference"]
    if preference is not None:
        tables["Pairs of the judge after each step"] = text_table(["after", "pairs"], preference["steps"].items())
        tables["Dropped votes"] = text_table(["reason", "votes"], preference["votes_dropped"].items())
    dropped = [(entry["annotated_by"], entry["reason"], entry["count"]) for entry in figures["dropped"]]
    if dropped:
        tables["Dropped prompts"] = text_table(["annotated by", "reason", "prompts"], dropped)
    return tables | audit_tables(figures.get("audit", ()), figures.get("prompts", {}))


def format_share(entry: Mapping[str, Any]) -> str:
    """Format a share with its interval."""
    return share_text(entry, 1, of=False)


def _count_reasons(dropped: pl.DataFrame, annotated_by: str) -> list[dict[str, Any]]:
    return [{"annotated_by": annotated_by} | row for row in count_by(dropped, "reason")]
