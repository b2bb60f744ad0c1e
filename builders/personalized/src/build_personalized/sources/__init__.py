"""Sources of questions with profiles: LaMP-QA, Stack Exchange dumps, and the sample in this package."""

from pathlib import Path

import polars as pl
from pluralbench_release import pinned
from pluralbench_release.errors import SourceError
from pluralbench_runs import public_location
from pluralbench_schemas import PERSONALIZED_QUESTIONS, VERBATIM_PERSONALIZED_QUESTIONS, TableError, validate

from build_personalized.recipe import PersonalizedRecipe, SourceTable, check_config
from build_personalized.sources import lamp_qa, stack_exchange
from build_personalized.sources.loaded import (
    LoadedQuestions,
    by_config,
    drops_frame,
    source_error_hint,
    split_location,
    split_locations,
)

KINDS = {"sample": False, "lamp-qa": None, "stack-exchange": True}
FORMS = "`sample`, `lamp-qa`, `lamp-qa:DIRECTORY`, `lamp-qa:ORG/NAME@REVISION` or `stack-exchange:POSTS_XML`"
SAMPLE = Path(__file__).parent.parent / "sample"

__all__ = ["SAMPLE", "LoadedQuestions", "drops_frame", "load", "pin"]


def pin(recipe: PersonalizedRecipe) -> PersonalizedRecipe:
    """Pin each Hub source of the recipe to its current commit; sources with a revision need no request."""
    split = [split_location(location, KINDS, FORMS) for location in recipe.source.locations]
    with source_error_hint("give `lamp-qa:DIRECTORY` or `lamp-qa:ORG/NAME@REVISION`"):
        locations = [
            f"lamp-qa:{pinned(rest or lamp_qa.HUB_ID)}" if kind == "lamp-qa" else location
            for location, (kind, rest) in zip(recipe.source.locations, split, strict=True)
        ]
    return recipe.model_copy(update={"source": recipe.source.model_copy(update={"locations": locations})})


def load(source: SourceTable, scratch: Path) -> LoadedQuestions:
    """Read all locations of a source and check the rows against `PERSONALIZED_QUESTIONS`.

    Rows of dumps follow those of the other locations. `scratch` holds the temporary files of a large dump.

    Raises:
        SourceError: A location is missing, damaged or unknown.
        UserError: A config's name cannot be used as a directory.
        TableError: Rows break the schema.
    """
    others, dumps = split_locations(source.locations, KINDS, FORMS)
    parts = [_load(kind, rest, source) for kind, rest in others]
    if dumps:
        parts.append(stack_exchange.load(dumps, source, scratch))
    questions = pl.concat([part.questions for part in parts])
    renamed = pl.col("config").replace(source.config_names)
    questions = questions.with_columns(renamed)
    drops = pl.concat([part.drops for part in parts]).with_columns(renamed)
    if questions.is_empty():
        raise SourceError(f"{', '.join(source.locations)}: the source has no rows.")
    for config, rows in by_config(questions):
        check_config(config, ", ".join(source.locations))
        where = f"{', '.join(source.locations)} ({config})"
        validate(rows, PERSONALIZED_QUESTIONS, file=where)
        if source.evidence == "verbatim":
            try:
                validate(rows, VERBATIM_PERSONALIZED_QUESTIONS, file=where)
            except TableError as error:
                hint = 'if evidence is paraphrased, say so in a recipe (`source.evidence="paraphrased"`)'
                raise TableError(f"{str(error).removesuffix('.')}; {hint}.", error.failures) from None
    return LoadedQuestions(questions, drops, [entry for part in parts for entry in part.sources])


def _load(kind: str, rest: str, source: SourceTable) -> LoadedQuestions:
    if kind == "sample":
        return lamp_qa.load(
            str(SAMPLE / "questions"),
            source,
            name="PluralBench sample",
            shown="sample",
            attribution="Invented for PluralBench.",
        )
    if lamp_qa.is_original(rest):
        return lamp_qa.load(rest, source)
    place = public_location(rest)
    return lamp_qa.load(rest, source, name=place, attribution=f"The authors of {place}.")
