"""The command `build-multilingual`."""

from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from pluralbench_runs import RecipeError, read_recipe, recipe_path, run
from pluralbench_runs.options import (
    ColumnIs,
    Fresh,
    Key,
    Licence,
    MaxCost,
    Name,
    On,
    Out,
    PerWorkerGpus,
    ReplayFrom,
    RetryErrors,
    ReuseFrom,
    Seed,
    SourceName,
    Title,
    WorkerCount,
    cluster_of,
    column_names,
    recipe_defaults,
)
from pluralbench_schemas import TableError
from rich.console import Console

from build_multilingual.translators import known_translators

EXAMPLES = """\
Examples:

build-multilingual

build-multilingual --source pairs.jsonl --language deu_Latn --translator google --project mine --out dist/german

build-multilingual --recipe translation --rated wmt21.jsonl --per-level 50 --out dist/translation
"""

app = typer.Typer(rich_markup_mode="rich")
console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
RATED = "Rated translations"

# What --help shows of the recipes.
KEYS = {
    "source": Key("source.location"),
    "language": Key("languages"),
    "english": Key("english", False),
    "translator": Key("translator.name"),
    "location": Key("connection.location", "global"),
    "drop": Key("filter.drop", "everywhere"),
    "per_level": Key("translation.per_level", 100),
    "limit": Key("source.limit"),
    "price": Key("connection.price"),
    "max_cost": Key("connection.max_cost"),
    "seed": Key("seed"),
}


MOST_PROCESSES = 8  # the rest of a build, in one process, keeps no more busy


def main() -> NoReturn:
    """Entry point of the command."""
    defaults = recipe_defaults(Path(__file__).parent / "recipes", KEYS)
    run(app, "build-multilingual", mistakes=(TableError,), defaults=defaults)


@app.command(epilog=EXAMPLES)
def command(
    recipe: Annotated[str, typer.Option(help="`sample`, `paper`, `translation`, or a TOML file.")] = "sample",
    source: Annotated[
        str | None, typer.Option(help="English pairs: `sample`, a directory or file, or `ORG/NAME@REVISION`.")
    ] = None,
    source_split: Annotated[str | None, typer.Option(help="Split of --source; RewardBench's is `filtered`.")] = None,
    column: ColumnIs = None,
    language: Annotated[list[str] | None, typer.Option(help="FLORES-200 code, such as spa_Latn; repeatable.")] = None,
    english: Annotated[
        bool | None, typer.Option("--add-english/--no-add-english", help="Add the source itself as config eng_Latn.")
    ] = None,
    translator: Annotated[
        str | None, typer.Option(metavar="NAME[:MODEL]", help=f"{', '.join(known_translators())}.")
    ] = None,
    glossary: Annotated[str | None, typer.Option(help="Full resource name of a Google glossary.")] = None,
    project: Annotated[str | None, typer.Option(help="Google Cloud project that is billed.")] = None,
    location: Annotated[str | None, typer.Option(help="Google Cloud location; glossaries want theirs.")] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="Another Google host, or http://127.0.0.1:PORT for a server on this machine.")
    ] = None,
    drop: Annotated[
        Literal["everywhere", "language"] | None,
        typer.Option(help="Where a row goes that has no good translation in a language."),
    ] = None,
    decisions: Annotated[
        list[str] | None, typer.Option(help="CSV with id, language, decision (drop or keep), reason; repeatable.")
    ] = None,
    export_review: Annotated[
        Path | None, typer.Option(help="Write review sheets to this folder, one CSV a language, keys apart.")
    ] = None,
    review_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of a review sheet, drawn; all without it.")
    ] = None,
    review_judge: Annotated[
        str | None,
        typer.Option(help="What a judge preferred, to compare reviewers with: items.parquet of its run, or a table."),
    ] = None,
    rated: Annotated[
        list[str] | None, typer.Option(help="Rated translations for the config `translation`.", rich_help_panel=RATED)
    ] = None,
    direction: Annotated[
        str | None, typer.Option(help="Such as zh-en, where --rated does not say.", rich_help_panel=RATED)
    ] = None,
    score: Annotated[str | None, typer.Option(help="Column of the score in --rated.", rich_help_panel=RATED)] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="BETTER/EASY/HARD",
            help="higher or lower is better, and the least differences of easy and hard pairs: higher/0.25/0.5.",
            rich_help_panel=RATED,
        ),
    ] = None,
    per_level: Annotated[
        int | None, typer.Option(min=1, help="Pairs of each direction and level.", rich_help_panel=RATED)
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows of each subset.")] = None,
    seed: Seed = None,
    price: Annotated[
        float | None, typer.Option(min=0, metavar="DOLLARS", help="US dollars for a million characters, such as 20.")
    ] = None,
    max_cost: MaxCost = None,
    source_name: SourceName = None,
    licence: Licence = None,
    out: Out = None,
    name: Name = None,
    title: Title = None,
    on: On = None,
    workers: WorkerCount = 1,
    per_worker_gpus: PerWorkerGpus = 0.0,
    replay: ReplayFrom = None,
    reuse: ReuseFrom = None,
    *,
    retry_errors: RetryErrors = False,
    fresh: Fresh = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes that check translations; without it one a core, at most 8.")
    ] = None,
) -> None:
    """Build M-RewardBench: an English benchmark in other languages, and pairs of better and worse translations.

    Without options it builds the sample in this package, with recorded translations and no network. An interrupted
    build goes on with the same command.
    """
    from pluralbench_release import tell  # noqa: PLC0415 - --help needs none of it
    from pluralbench_runs.workers import usable_cores  # noqa: PLC0415 - the same

    from build_multilingual.build import build  # noqa: PLC0415 - the same
    from build_multilingual.figures import ONLY_ON_THE_CARD, figures_tables  # noqa: PLC0415 - the same
    from build_multilingual.recipe import RECIPES, MultilingualRecipe  # noqa: PLC0415 - the same

    translates, _, model = (translator or "").partition(":")
    overrides: dict[str, Any] = {
        "name": name,
        "title": title,
        "source.location": source,
        "source.name": source_name,
        "source.licence": licence,
        "source.split": source_split,
        "source.limit": limit,
        "source.columns": column_names(column),
        "languages": language,
        "english": english,
        "translator.name": translates or None,
        "translator.model": model or None,
        "translator.glossary": glossary,
        "connection.project": project,
        "connection.location": location,
        "connection.endpoint": endpoint,
        "connection.price": price,
        "connection.max_cost": max_cost,
        "filter.drop": drop,
        "review.decisions": decisions,
        "review.judged": review_judge,
        "translation.rated": _rated(rated, direction, score, scale),
        "translation.per_level": per_level,
        "seed": seed,
    }
    if source is not None and source != "sample" and recipe == "sample":
        # Of the sample only its defaults are wanted then, not its rated translations.
        overrides["translation.rated"] = overrides["translation.rated"] or []
    asked = read_recipe(MultilingualRecipe, recipe_path(recipe, RECIPES), overrides)
    target = out or Path("dist") / asked.name
    built = build(
        asked,
        target,
        replay=replay,
        reuse=reuse,
        retry_errors=retry_errors,
        review=export_review,
        review_rows=review_rows,
        fresh=fresh,
        processes=processes or min(usable_cores(), MOST_PROCESSES),
        cluster=cluster_of(on, workers, per_worker_gpus),
    )
    figures = figures_tables(built.figures)
    sheets = [] if export_review is None else sorted(export_review.glob("*.csv"))
    tell(
        console,
        target,
        built.manifest,
        built.new_calls,
        {title: table for title, table in figures.items() if title not in ONLY_ON_THE_CARD},
        notes=[f"Review sheet: {sheet} (its key is in {sheet.parent / 'keys'})" for sheet in sheets],
        following=[f"pluralbench score MODEL --benchmark multilingual --data {target}  (pip install pluralbench)"],
    )


def _rated(
    locations: list[str] | None, direction: str | None, score: str | None, scale: str | None
) -> list[dict[str, Any]] | None:
    if not locations:
        for flag, value in (("--direction", direction), ("--score", score), ("--scale", scale)):
            if value is not None:
                raise RecipeError(f"{flag} says something about rated translations; say where they are with --rated.")
        return None
    table = {"direction": direction, "score": score, "scale": _scale(scale)}
    given = {name: value for name, value in table.items() if value is not None}
    return [{"location": location, **given} for location in locations]


def _scale(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    parts = text.split("/")
    if len(parts) != 3 or parts[0] not in {"higher", "lower"}:
        raise RecipeError(f"--scale {text!r} is not of the form BETTER/EASY/HARD, such as higher/0.25/0.5.")
    return {"better": parts[0], "easy": parts[1], "hard": parts[2]}
