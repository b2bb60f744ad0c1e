"""The command `build-persona-judge`."""

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pluralbench_runs import RecipeError, read_recipe, recipe_path, run
from pluralbench_runs.options import (
    Fresh,
    Key,
    Licence,
    Name,
    On,
    Out,
    PerWorkerGpus,
    ReplayFrom,
    ReuseFrom,
    Seed,
    SourceName,
    Title,
    WorkerCount,
    cluster_of,
    of_one_source,
    recipe_defaults,
    refuse_before_verb,
)
from pluralbench_schemas import TableError
from rich.console import Console

from build_persona_judge.labels import cli as labelling

EXAMPLES = """\
Examples:

build-persona-judge

build-persona-judge --prism HannahRoseKirk/prism-alignment --opinion-qa human_resp --out dist/judge

build-persona-judge --people-csv my-survey --out dist/survey

build-persona-judge label --release dist/survey --task my-survey --export labels --annotator an --annotator bo
--annotator cy
"""

app = typer.Typer(rich_markup_mode="rich", invoke_without_command=True, epilog=EXAMPLES)
console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
SOURCES = "Sources; naming any builds these alone"

# What --help shows of the recipes.
KEYS = {
    "respondents": Key("opinion_qa.respondents", 200),
    "exclude_family": Key("prism.exclude_families"),
    "retriever": Key("retriever"),
    "seed": Key("seed"),
}


def main() -> NoReturn:
    """Entry point of the command."""
    defaults = recipe_defaults(Path(__file__).parent / "recipes", KEYS)
    verbs = {"label": labelling.DEFAULTS}
    run(app, "build-persona-judge", mistakes=(TableError,), defaults=defaults, verbs=verbs)


@app.callback()
def command(
    context: typer.Context,
    recipe: Annotated[
        str | None,
        typer.Option(help="`sample`, `paper`, or a TOML file; without it `sample`, or `paper` for own files."),
    ] = None,
    prism: Annotated[
        str | None,
        typer.Option(help="PRISM: a folder, or `ORG/NAME@REVISION` on the Hub.", rich_help_panel=SOURCES),
    ] = None,
    opinion_qa: Annotated[
        str | None, typer.Option(metavar="DIR", help="OpinionQA's folder of waves.", rich_help_panel=SOURCES)
    ] = None,
    empathic_conversations: Annotated[
        str | None, typer.Option(metavar="DIR", help="The WASSA files.", rich_help_panel=SOURCES)
    ] = None,
    personal_reddit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Personal Reddit's JSONL file.", rich_help_panel=SOURCES)
    ] = None,
    people_csv: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="people.csv, questions.csv and choices.csv; the task is called after the folder; repeatable.",
            rich_help_panel=SOURCES,
        ),
    ] = None,
    essays: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Essays in the WASSA folder; repeatable.", rich_help_panel=SOURCES),
    ] = None,
    persons: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Their writers in the WASSA folder; repeatable.", rich_help_panel=SOURCES),
    ] = None,
    source_name: SourceName = None,
    licence: Licence = None,
    size: Annotated[
        int | None, typer.Option(min=1, help="Items of each task that are no tie, exactly so many.")
    ] = None,
    respondents: Annotated[int | None, typer.Option(min=1, help="Of each wave of OpinionQA, exactly so many.")] = None,
    exclude_family: Annotated[
        list[str] | None,
        typer.Option(help="Leave out PRISM's responses of models whose name contains this; repeatable."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Third-person labels of these items, as the verb `label` writes them."),
    ] = None,
    retriever: Annotated[
        str | None, typer.Option(help="`bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.")
    ] = None,
    seed: Seed = None,
    out: Out = None,
    name: Name = None,
    title: Title = None,
    on: On = None,
    workers: WorkerCount = 1,
    per_worker_gpus: PerWorkerGpus = 0.0,
    replay: ReplayFrom = None,
    reuse: ReuseFrom = None,
    *,
    fresh: Fresh = False,
) -> None:
    """Build persona judge: of two options, which one belongs to a person who is known by a persona alone.

    Without options it builds the sample in this package, with recorded rankings and no network. The verb `label` has
    people answer its items for others.
    """
    if context.invoked_subcommand is not None:
        refuse_before_verb(context, "build-persona-judge")
        return
    from pluralbench_release import tell  # noqa: PLC0415 - --help needs none of it

    from build_persona_judge.build import build  # noqa: PLC0415 - the same
    from build_persona_judge.figures import figures_tables  # noqa: PLC0415 - the same
    from build_persona_judge.recipe import RECIPES, SAMPLE, TASKS, PersonaJudgeRecipe  # noqa: PLC0415 - the same

    given = {
        "prism": prism,
        "opinion_qa": opinion_qa,
        "empathic_conversations": empathic_conversations,
        "personal_reddit": personal_reddit,
    }
    named = [task for task in TASKS if given[task] is not None]
    own = bool(people_csv) or any(given[task] != SAMPLE for task in named)
    file = recipe_path(recipe or ("paper" if own else SAMPLE), RECIPES)
    read = read_recipe(PersonaJudgeRecipe, file)
    alone = bool(named or people_csv)
    kept = named if alone else [task for task in TASKS if getattr(read, task) is not None]
    tables = _people(people_csv) if alone else [table.model_dump(exclude_none=True) for table in read.people_csv]
    tasks = [*kept, *(table["task"] for table in tables)]
    told = {"size": size} | of_one_source(tasks, source_name, licence)
    overrides: dict[str, Any] = {f"{task}.location": given[task] for task in kept}
    overrides |= {f"{task}.{key}": value for task in kept for key, value in told.items()}
    told = {key: value for key, value in told.items() if value is not None}
    overrides["people_csv"] = [table | told for table in tables]
    overrides |= _only("opinion_qa", kept, "respondents", respondents)
    overrides |= _only("empathic_conversations", kept, "essays", essays)
    overrides |= _only("empathic_conversations", kept, "persons", persons)
    overrides |= _only("prism", kept, "exclude_families", exclude_family)
    overrides |= {"name": name, "title": title, "retriever": retriever, "seed": seed, "labels": labels}
    asked = read_recipe(PersonaJudgeRecipe, file, overrides)
    asked = asked.model_copy(update={task: None for task in TASKS if task not in kept})
    target = out or Path("dist") / asked.name
    cluster = cluster_of(on, workers, per_worker_gpus)
    built = build(asked, target, replay=replay, reuse=reuse, fresh=fresh, cluster=cluster)
    tell(console, target, built.manifest, built.new_calls, figures_tables(built.figures))


app.command("label", epilog=labelling.EXAMPLES)(labelling.label)


def _people(folders: list[Path] | None) -> list[dict[str, Any]]:
    return [{"task": folder.resolve().name, "location": str(folder)} for folder in folders or []]


def _only(task: str, kept: list[str], key: str, value: object) -> dict[str, object]:
    """An override of one task. Raises `RecipeError` where that task is not built."""
    if value is not None and task not in kept:
        raise RecipeError(f"`{key}` is of the task {task}, which is not built here; name its source, or leave it out.")
    return {f"{task}.{key}": value} if task in kept else {}
