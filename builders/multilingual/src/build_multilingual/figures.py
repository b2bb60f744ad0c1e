"""Figures of a build: rows, drops, failures by language and reason, lengths."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import count_by, text_table

from build_multilingual.audit import DUPLICATES, SURFACE, audit_tables
from build_multilingual.preferred import review_table
from build_multilingual.rated import RatedTranslations
from build_multilingual.source import TEXTS

BY_SUBSET = "Rows with a good translation in every language"
REVIEW = "Preferences of reviewers in translation (95 % intervals)"
CARD_ONLY = {BY_SUBSET, SURFACE, DUPLICATES}  # too long for the terminal: 23 lines


def language_figures(
    by_language: Mapping[str, pl.DataFrame],
    set_aside: pl.DataFrame,
    dropped: pl.DataFrame,
    english: pl.DataFrame | None,
) -> dict[str, Any]:
    """Compute the figures of the language configs, JSON: rows, drops, failed texts (`SET_ASIDE`), lengths, subsets.

    `english`: rows of the source, None in a build of rated translations only.
    """
    figures: dict[str, Any] = {
        "source_rows": 0 if english is None else english.height,
        "rows": {code: frame.height for code, frame in by_language.items()},
        "ids_dropped": dropped["id"].n_unique(),
        "drops": count_by(dropped, "language", "by", "reason"),
        "set_aside": count_by(set_aside, "language", "field", "reason"),
        "length": {},
        "subsets": [],
    }
    if english is not None:
        characters = {row["id"]: sum(len(row[name]) for name in TEXTS) for row in english.iter_rows(named=True)}
        for code, frame in by_language.items():
            own = sum(int(frame[name].str.len_chars().sum()) for name in TEXTS)
            figures["length"][code] = round(own / max(sum(characters[row_id] for row_id in frame["id"]), 1), 4)
        dropped_ids = dropped["id"].unique().to_list()
        figures["subsets"] = [
            {"subset": subset, "category": category, "source": rows, "kept_everywhere": remaining}
            for subset, category, rows, remaining in english.group_by("subset", maintain_order=True)
            .agg(pl.first("category"), pl.len().alias("rows"), (~pl.col("id").is_in(dropped_ids)).sum().alias("kept"))
            .iter_rows()
        ]
    return figures


def translation_figures(pairs: pl.DataFrame | None, tables: Sequence[RatedTranslations]) -> dict[str, Any]:
    """Compute the figures of the config `translation`, JSON; empty without pairs.

    `longer` is the share of pairs whose better translation is the longer one, which a scorer could exploit.
    """
    if pairs is None:
        return {}
    longer = (pl.col("chosen").str.len_chars() > pl.col("rejected").str.len_chars()).mean().alias("longer")
    rows = pairs.group_by("subset", maintain_order=True).agg(pl.len().alias("pairs"), longer).to_dicts()
    return {
        "translation": [row | {"longer": round(row["longer"], 4)} for row in rows],
        "rated": [
            {"source": table.source.name, "score": table.score, "rows": table.source.rows, "left_out": table.left_out}
            for table in tables
        ],
    }


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Format the figures as small tables for the card and the terminal, by title."""
    tables: dict[str, pl.DataFrame] = {}
    if figures["rows"]:
        failed = Counter[str]()
        for entry in figures["set_aside"]:
            failed[entry["language"]] += entry["count"]
        tables["Languages"] = text_table(
            ["config", "rows", "failed texts", "length ratio to English"],
            [
                (code, count, failed[code], f"{figures['length'].get(code, 0):.2f}")
                for code, count in figures["rows"].items()
            ],
        )
        tables[BY_SUBSET] = text_table(
            ["category", "subset", "rows"],
            [
                (entry["category"], entry["subset"], f"{entry['kept_everywhere']:,} of {entry['source']:,}")
                for entry in figures["subsets"]
            ],
        )
    reasons = Counter[tuple[str, str]]()
    for entry in figures["drops"]:
        reasons[entry["by"], entry["reason"]] += entry["count"]
    if reasons:
        tables["Dropped rows by reason (counted per language)"] = text_table(
            ["by", "reason", "count"], [(*reason, count) for reason, count in reasons.most_common()]
        )
    if "translation" in figures:
        pairs = [(row["subset"], row["pairs"], f"{row['longer']:.0%}") for row in figures["translation"]]
        tables["Translation pairs"] = text_table(["subset", "pairs", "chosen is longer"], pairs)
    if figures.get("review"):
        tables[REVIEW] = review_table(figures["review"])
    return tables | audit_tables(figures["audit"])
