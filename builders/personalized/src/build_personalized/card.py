"""Tables of a build for its card and the terminal; the card's texts are in card.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pluralbench_calls import ChatModel
from pluralbench_release import Card, card_from, entries_table, markdown_table, text_table
from pluralbench_release.audit import wins_text

from build_personalized.audit import SHORT
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.sources.lamp_qa import is_original

TEXTS = Path(__file__).with_name("card.toml")
NOTES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("notes.toml").read_text(encoding="utf-8"))
STATISTICS = "Statistics: means ± standard deviations, lengths in words"
STATISTIC_NAMES = {
    "rubric_aspects": "rubric aspects",
    "question_words": "length of question",
    "narrative_words": "length of narrative",
    "profile_posts": "posts in a profile",
    "chosen_words": "length of chosen",
    "rejected_words": "length of rejected",
}


def origin_note(texts: Literal["answers", "personas"], writer: ChatModel) -> str:
    """Return a note on who wrote texts and on how far they can be used."""
    notes = NOTES[texts]
    return notes.get(writer.provider, notes["other"]).format(model=writer.model, provider=writer.provider)


def figures_tables(figures: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Return the audit's figures as small tables, by title."""
    near = figures["near_duplicates"]
    rows = [
        *length_rows(figures),
        (f"answers of fewer than {SHORT} words", f"{figures['short']} of {2 * figures['pairs']}"),
        ("answers over the word limit", str(figures["over_limit"])),
        ("accuracy of choosing the longer answer (in characters)", wins_text(figures["longer"])),
        *overlap_rows(figures, "aspect words"),
        ("near-duplicate questions / chosen answers", f"{near['questions']} / {near['chosen']}"),
        ("pairs whose two answers are near-duplicates", str(near["sides"])),
        ("posts in a profile (min / median / max)", spread_text(figures["profile_posts"])),
        ("aspects per question, mean", f"{figures['aspects_per_question']:.1f}"),
    ]
    tables = {"Audit": text_table(["figure", "value"], rows)}
    tables[STATISTICS] = statistics_table(figures["by_config"])
    if figures["drops"]:
        tables["Left out"] = drops_table(figures["drops"])
    return tables


def length_rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of an audit with the lengths of both answers in words."""
    length = figures["length"]
    return [
        ("words, mean (chosen / rejected)", f"{length['chosen_mean']:.1f} / {length['rejected_mean']:.1f}"),
        ("words, chosen minus rejected, mean", f"{length['mean_gap']:+.1f}"),
    ]


def overlap_rows(figures: dict[str, Any], words: str) -> list[tuple[str, str]]:
    """Return the rows of an audit with the share of `words` that both answers repeat."""
    overlap = figures["overlap"]
    shares = f"{overlap['chosen_mean']:.1%} / {overlap['rejected_mean']:.1%}"
    return [
        (f"{words} repeated, mean (chosen / rejected)", shares),
        ("accuracy of choosing the answer with more of them", wins_text(figures["more_overlap"])),
    ]


def spread_text(spread: dict[str, Any]) -> str:
    """Format the result of `audit.spread`."""
    return f"{spread['min']} / {spread['median']:g} / {spread['max']}"


def statistics_table(by_config: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return the paper's table 4 for this release: one column per config, means with standard deviations."""
    columns = {"": ["questions (users)", *STATISTIC_NAMES.values()]}
    for entry in by_config:
        # Narrow tables can break names only at spaces.
        columns[entry["config"].replace("_", " ")] = [
            f"{entry['questions']:,}",
            *(_mean(entry[name]) for name in STATISTIC_NAMES),
        ]
    return pl.DataFrame(columns)


def _mean(measured: dict[str, Any]) -> str:
    return f"{measured['mean']:.2f}" + ("" if measured["sd"] is None else f" ± {measured['sd']:.2f}")


def drops_table(drops: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return a table of the dropped rows, from `audit.drop_counts`."""
    return entries_table(("config", "step", "reason", "count"), drops)


def card(recipe: PersonalizedRecipe, figures: dict[str, Any]) -> Card:
    """Return the dataset card of a release."""
    configs = ", ".join(entry["config"] for entry in figures["by_config"])
    tables = figures_tables(figures)
    sections: dict[str, pl.DataFrame | str] = {STATISTICS: tables.pop(STATISTICS), "Audit": audit_section(tables)}
    made = card_from(TEXTS, sections, recipe=recipe, figures=figures, note=origin_note("answers", recipe.llm))
    creators = {"annotations_creators": ("expert-generated",)} if recipe.llm.provider == "hand-written" else {}
    made = made.model_copy(update={"languages": [recipe.source.language], **creators})
    return made.of({_origin(location) for location in recipe.source.locations}, f"Personalized pairs of {configs}")


def audit_section(tables: Mapping[str, pl.DataFrame]) -> str:
    """Return tables as one section of the card, all but the first with their titles."""
    texts = [f"### {title}\n\n{markdown_table(table)}" for title, table in tables.items()]
    return "\n\n".join(texts).removeprefix("### Audit\n\n")


def _origin(location: str) -> str:
    kind, _, place = location.partition(":")
    return "paper" if kind == "lamp-qa" and is_original(place) else kind
