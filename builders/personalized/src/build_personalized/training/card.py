"""Tables of personalized preferences for the card and the terminal; the card's texts are in card.toml."""

from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import Card, card_from, text_table
from pluralbench_release.audit import wins_text

from build_personalized.card import audit_section, drops_table, origin_note
from build_personalized.training.recipe import TrainingRecipe

TEXTS = Path(__file__).with_name("card.toml")


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Return the figures of `audit` as small tables, by title."""
    length, near, posts = figures["length"], figures["near_duplicates"], figures["profile_posts"]
    rows = [
        ("users", f"{figures['users']:,}"),
        ("pairs per user (min / median / max)", _spread_text(figures["pairs_a_user"])),
        ("posts in a profile (min / median / max)", _spread_text(posts)),
        ("users with a persona", f"{figures['personas']:,}"),
        ("words, mean (chosen / rejected)", f"{length['chosen_mean']:.1f} / {length['rejected_mean']:.1f}"),
        ("words, chosen minus rejected, mean", f"{length['mean_gap']:+.1f}"),
        ("accuracy of choosing the longer answer (in characters)", wins_text(figures["longer"])),
        ("near-duplicates of different users (prompts / chosen)", f"{near['prompts']} / {near['chosen']}"),
        ("prompts of other splits that are near-duplicates of one in train", str(figures["across_splits"])),
        ("pairs whose two answers are near-duplicates", str(near["sides"])),
        ("pairs whose prompt is in an earlier pair of the user", str(figures["asked_again"])),
    ]
    if "overlap" in figures:
        overlap = figures["overlap"]
        repeated = f"{overlap['chosen_mean']:.1%} / {overlap['rejected_mean']:.1%}"
        rows += [
            ("words of the persona repeated, mean (chosen / rejected)", repeated),
            ("accuracy of choosing the answer with more of them", wins_text(figures["more_overlap"])),
        ]
    tables = {
        "Audit": text_table(["figure", "value"], rows),
        "Splits": _splits_table(figures),
        "Removed because of benchmarks": _contamination_table(figures["contamination"]),
    }
    return tables | ({"Left out": drops_table(figures["drops"])} if figures["drops"] else {})


def card(recipe: TrainingRecipe, figures: dict[str, Any]) -> Card:
    """Return the dataset card of a release."""
    audit = audit_section(figures_tables(figures))
    made = card_from(
        TEXTS, {"Audit": audit}, recipe=recipe, figures=figures, note=origin_note("personas", recipe.persona)
    )
    return made.model_copy(update={"languages": [recipe.source.language]})


def _splits_table(figures: dict[str, Any]) -> pl.DataFrame:
    names = ("config", "split", "users", "pairs")
    return text_table(names, [[entry[name] for name in names] for entry in figures["by_split"]])


def _contamination_table(contamination: dict[str, Any]) -> pl.DataFrame:
    rows = [(kind, pairs, contamination["posts"][kind]) for kind, pairs in contamination["pairs"].items()]
    return text_table(["match", "pairs", "posts of users"], rows)


def _spread_text(spread: dict[str, Any]) -> str:
    return f"{spread['min']} / {spread['median']:g} / {spread['max']}"
