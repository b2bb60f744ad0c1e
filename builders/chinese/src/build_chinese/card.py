"""The dataset card of a release; its texts are in card.toml."""

from pathlib import Path
from typing import Any

from pluralbench_release import Card, card_from, markdown_table

from build_chinese.figures import figures_tables
from build_chinese.lengths import FIGURE, LENGTHS
from build_chinese.recipe import SAMPLE, ChineseRecipe

TEXTS = Path(__file__).with_name("card.toml")


def card(recipe: ChineseRecipe, figures: dict[str, Any]) -> Card:
    """Return the dataset card of a release."""
    tables = {title: markdown_table(table) for title, table in figures_tables(figures).items()}
    if LENGTHS in tables:
        tables[LENGTHS] = f"![{LENGTHS}]({FIGURE})\n\n{tables[LENGTHS]}"
    distant = recipe.unlabeled is not None and recipe.preference.distant
    creators = ["machine-generated"] * (recipe.unlabeled is not None)
    if recipe.annotated is not None:
        creators.append("other" if recipe.annotated.location == SAMPLE else "crowdsourced")
    made = card_from(TEXTS, tables, recipe=recipe, figures=figures, distant=distant)
    return made.model_copy(update={"annotations_creators": tuple(sorted(creators))}).of(
        # Files do not tell whether they are the published ones of CHEEMS; the recipe's title does.
        {
            "sample" if table.location == SAMPLE else "own"
            for table in (recipe.annotated, recipe.unlabeled)
            if table is not None
        },
        "Ranked responses to Chinese prompts",
    )
