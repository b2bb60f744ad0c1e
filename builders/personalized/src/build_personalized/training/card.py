"""Tables of personalized preferences for the card and the terminal; the card's texts are in card.toml."""

from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import Card, card_from, entries_table, text_table
from pluralbench_release.audit import wins_text

from build_personalized.card import audit_section, drops_table, length_rows, origin_note, overlap_rows, spread_text
from build_personalized.training.recipe import TrainingRecipe

TEXTS = Path(__file__).with_name("card.toml")
CREATORS = {"sample": "expert-generated", "arena": "crowdsourced", "prism": "crowdsourced"}
"""Who preferred the answers, by the kind of source, in the Hub's words; of others it is known only to the source."""


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Return the figures of `audit` as small tables, by title."""
    near = figures["near_duplicates"]
    rows = [
        ("users", f"{figures['users']:,}"),
        ("pairs per user (min / median / max)", spread_text(figures["pairs_a_user"])),
        ("posts in a profile (min / median / max)", spread_text(figures["profile_posts"])),
        ("users with a persona", f"{figures['personas']:,}"),
        *length_rows(figures),
        ("accuracy of choosing the longer answer (in characters)", wins_text(figures["longer"])),
        ("near-duplicates of different users (prompts / chosen)", f"{near['prompts']} / {near['chosen']}"),
        ("prompts of other splits that are near-duplicates of one in train", str(figures["across_splits"])),
        ("pairs whose two answers are near-duplicates", str(near["sides"])),
        ("pairs whose prompt is in an earlier pair of the user", str(figures["asked_again"])),
    ]
    if "overlap" in figures:
        rows += overlap_rows(figures, "words of the persona")
    pairs, posts = (figures["contamination"][name] for name in ("pairs", "posts"))
    removed = [(kind, pairs[kind], posts[kind]) for kind in pairs]
    tables = {
        "Audit": text_table(["figure", "value"], rows),
        "Splits": entries_table(("config", "split", "users", "pairs"), figures["by_split"]),
        "Removed because of benchmarks": text_table(["match", "pairs", "posts of users"], removed),
    }
    return tables | ({"Left out": drops_table(figures["drops"])} if figures["drops"] else {})


def card(recipe: TrainingRecipe, figures: dict[str, Any]) -> Card:
    """Return the dataset card of a release."""
    audit = audit_section(figures_tables(figures))
    made = card_from(
        TEXTS, {"Audit": audit}, recipe=recipe, figures=figures, note=origin_note("personas", recipe.persona)
    )
    kinds = {location.partition(":")[0] for location in recipe.source.locations}
    creators = tuple(sorted({CREATORS.get(kind, "found") for kind in kinds}))
    return made.model_copy(update={"languages": [recipe.source.language], "annotations_creators": creators})
