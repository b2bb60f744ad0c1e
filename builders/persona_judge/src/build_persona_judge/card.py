"""The dataset card of a release; its texts are in card.toml."""

from pathlib import Path
from typing import Any

from pluralbench_release import Card, card_from

from build_persona_judge.figures import figures_tables
from build_persona_judge.recipe import SAMPLE, TASKS, PersonaJudgeRecipe

TEXTS = Path(__file__).with_name("card.toml")


def card(recipe: PersonaJudgeRecipe, figures: dict[str, Any]) -> Card:
    """Return the dataset card of a release."""
    origins = {
        SAMPLE if table.location == SAMPLE else "paper" if name in TASKS and table.name is None else "own"
        for name, table in recipe.sources
    }
    made = card_from(TEXTS, figures_tables(figures), recipe=recipe, sample=SAMPLE in origins)
    if SAMPLE in origins:
        made = made.model_copy(update={"annotations_creators": ("expert-generated",)})
    return made.of(origins, f"Choices by people of {', '.join(name for name, _ in recipe.sources)}")
