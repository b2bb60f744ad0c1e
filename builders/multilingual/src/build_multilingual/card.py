"""The dataset card of a release; its texts are in card.toml."""

from pathlib import Path, PurePath
from typing import Any

from pluralbench_release import Card, card_from
from pluralbench_schemas import ENGLISH, language_of

from build_multilingual.figures import figures_tables
from build_multilingual.recipe import MultilingualRecipe
from build_multilingual.source import REWARD_BENCH

TEXTS = Path(__file__).with_name("card.toml")
MAPLE = "maple-train.jsonl"  # the paper's rated translations, as named in their repository


def card(recipe: MultilingualRecipe, figures: dict[str, Any], *, numbered: bool) -> Card:
    """Return the dataset card of a release. `numbered`: whether `id` is the number of the source's row."""
    pairs, rated = bool(recipe.languages or recipe.english), bool(recipe.translation.rated)
    made = card_from(TEXTS, figures_tables(figures), recipe=recipe, figures=figures, numbered=numbered)
    changes = {
        "languages": _languages(recipe, figures),
        "tasks": [*made.tasks, *["translation"] * rated],
    }
    return made.model_copy(update=changes).of(
        {_origin(table.location) for table in (recipe.source, *recipe.translation.rated) if table is not None},
        "Preference pairs in several languages" if pairs else "Pairs of translations",
    )


def _origin(location: str) -> str:
    place = location.partition("@")[0]
    return "paper" if place == REWARD_BENCH or PurePath(place).name == MAPLE else place


def _languages(recipe: MultilingualRecipe, figures: dict[str, Any]) -> list[str]:
    codes = [*recipe.languages, *[ENGLISH] * recipe.english]
    for row in figures.get("translation", []):
        codes += row["subset"].split("-")[1:3]
    languages = map(language_of, codes)
    return sorted({language.langid for language in languages if language is not None})
