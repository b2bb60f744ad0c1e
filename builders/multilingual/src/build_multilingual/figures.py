"""What a build amounts to in numbers: rows, drops, failures by language and reason, lengths."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import text_table

from build_multilingual.audit import ALIKE, SURFACE, audit_tables
from build_multilingual.preferred import review_table
from build_multilingual.rated import Rated
from build_multilingual.source import TEXTS

BY_SUBSET = "Rows with a good translation in every language"
REVIEW = "What reviewers prefer in translation (95 % intervals)"
ONLY_ON_THE_CARD = {BY_SUBSET, SURFACE, ALIKE}  # 23 lines


def figures_of(
    by_language: Mapping[str, pl.DataFrame],
    set_aside: pl.DataFrame,
    dropped: pl.DataFrame,
    english: pl.DataFrame | None,
) -> dict[str, Any]:
    """The figures of the language configs, JSON.

    set_aside: texts that failed a check twice. dropped: rows by language and reason. english: the source's rows.
    """
    figures: dict[str, Any] = {
        "source_rows": 0 if english is None else english.height,
        "rows": {code: frame.height for code, frame in by_language.items()},
        "ids_dropped": dropped["id"].n_unique(),
        "drops": _counted(dropped, "language", "by", "reason"),
        "set_aside": _counted(set_aside, "language", "field", "reason"),
        "length": {},
        "subsets": [],
    }
    if english is not None:
        characters = {row["id"]: sum(len(row[name]) for name in TEXTS) for row in english.iter_rows(named=True)}
        for code, frame in by_language.items():
            own = sum(int(frame[name].str.len_chars().sum()) for name in TEXTS)
            figures["length"][code] = round(own / max(sum(characters[row_id] for row_id in frame["id"]), 1), 4)
        gone = dropped["id"].unique().to_list()
        figures["subsets"] = [
            {"subset": subset, "category": category, "source": rows, "kept_everywhere": kept}
            for subset, category, rows, kept in english.group_by("subset", maintain_order=True)
            .agg(pl.first("category"), pl.len().alias("rows"), (~pl.col("id").is_in(gone)).sum().alias("kept"))
            .iter_rows()
        ]
    return figures


def translation_figures(pairs: pl.DataFrame | None, read: Sequence[Rated]) -> dict[str, Any]:
    """The figures of the config `translation`, JSON: its pairs, and what of the rated translations was left out.

    longer: the share of pairs whose better translation is the longer one, which a scorer could cheat by.
    """
    if pairs is None:
        return {}
    longer = (pl.col("chosen").str.len_chars() > pl.col("rejected").str.len_chars()).mean().alias("longer")
    rows = pairs.group_by("subset", maintain_order=True).agg(pl.len().alias("pairs"), longer).to_dicts()
    return {
        "translation": [row | {"longer": round(row["longer"], 4)} for row in rows],
        "rated": [
            {"source": entry.source.name, "score": entry.score, "rows": entry.source.rows, "left_out": entry.left_out}
            for entry in read
        ],
    }


def _counted(frame: pl.DataFrame, *columns: str) -> list[dict[str, Any]]:
    counts = frame.group_by(*columns).len("count").sort(*columns)
    return counts.to_dicts()


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """The figures as small tables with a title each, for the card and the terminal."""
    found: dict[str, pl.DataFrame] = {}
    if figures["rows"]:
        failed = Counter[str]()
        for entry in figures["set_aside"]:
            failed[entry["language"]] += entry["count"]
        found["Languages"] = text_table(
            ["config", "rows", "texts that failed a check", "length against English"],
            [
                (code, count, failed[code], f"{figures['length'].get(code, 0):.2f}")
                for code, count in figures["rows"].items()
            ],
        )
        found[BY_SUBSET] = text_table(
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
        found["Why rows were dropped (rows by language)"] = text_table(
            ["by", "reason", "count"], [(*reason, count) for reason, count in reasons.most_common()]
        )
    if "translation" in figures:
        pairs = [(row["subset"], row["pairs"], f"{row['longer']:.0%}") for row in figures["translation"]]
        found["Translation pairs"] = text_table(["subset", "pairs", "better one is the longer"], pairs)
    if figures.get("review"):
        found[REVIEW] = review_table(figures["review"])
    return found | audit_tables(figures["audit"])
