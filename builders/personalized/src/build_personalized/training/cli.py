"""The verb `training` of the command `build-personalized`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pluralbench_calls import chosen_model
from pluralbench_calls.options import ApiKeyEnv, BaseUrl, Batch, Import, Pending, TokenPrice, connection_values
from pluralbench_runs import RecipeError, read_recipe, recipe_path
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
from rich.console import Console

# Of a model this small the first of 120 words are the best.
LOCAL_SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224, "questions": 10, "question_words": 60}
OWN_PROVIDERS = ("none", "hand-written")
NOTHING = "none"

EXAMPLES = """\
Examples:

build-personalized training

build-personalized training --source stack-exchange:beer.stackexchange.com/Posts.xml --persona-llm gpt-5-mini
--price 0.25/2 --max-cost 5 --out dist/beer-training

build-personalized training --source table:mine.jsonl --column user=who --against sample --out dist/mine
"""

# What --help shows of the recipes.
KEYS = {
    "source": Key("source.locations"),
    "limit": Key("source.limit"),
    "persona_llm": Key("persona.model", "none"),
    "against": Key("against"),
    "min_posts": Key("min_posts", 1),
    "price": Key("connection.price"),
    "max_cost": Key("connection.max_cost"),
    "seed": Key("seed"),
}

console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def defaults() -> dict[str, str]:
    """What --help shows as the defaults of this verb."""
    return recipe_defaults(Path(__file__).parent / "recipes", KEYS)


def training(
    recipe: Annotated[
        str | None,
        typer.Option(help="`sample`, `paper`, `own`, or a TOML file; without it `sample`, or `own` with --source."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="`sample`, `arena`, `prism` (these two also with `:DIRECTORY` or `:ORG/NAME@REVISION`), "
            "`table:FILE_OR_DIR` or `stack-exchange:POSTS_XML`; repeatable."
        ),
    ] = None,
    column: ColumnIs = None,
    source_name: SourceName = None,
    licence: Licence = None,
    out: Out = None,
    name: Name = None,
    title: Title = None,
    persona_llm: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Who sums up each user: `none`, `hand-written` (the sample's), `local` (the embedded model), or a "
            "model of --base-url.",
        ),
    ] = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="A benchmark whose questions must not be learned from: a release, a table, `ORG/NAME@REVISION`, "
            "`sample`, or `none`; repeatable."
        ),
    ] = None,
    min_posts: Annotated[
        int | None, typer.Option(min=0, help="Leave out pairs of users with fewer other questions; 0 keeps them all.")
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(metavar="TRAIN/VALIDATION/TEST", help="Shares of the users, such as 0.8/0.1/0.1."),
    ] = None,
    own_splits: Annotated[
        bool | None, typer.Option("--own-splits", help="Take the splits of the source, which must keep users apart.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many users of each config.")] = None,
    seed: Seed = None,
    max_cost: MaxCost = None,
    price: TokenPrice = None,
    pending: Pending = None,
    results: Import = None,
    on: On = None,
    workers: WorkerCount = 1,
    per_worker_gpus: PerWorkerGpus = 0.0,
    replay: ReplayFrom = None,
    reuse: ReuseFrom = None,
    *,
    retry_errors: RetryErrors = False,
    batch: Batch = False,
    fresh: Fresh = False,
) -> None:
    """Build preferences with users, to train personalized reward models: who preferred which of two answers.

    Each pair comes with the user's other questions as a profile and, by --persona-llm, a persona that a model made of
    them. Users are in one split only, and no question of a benchmark is in the release. Without options it builds the
    sample in this package, with no model and no network. An interrupted build goes on with the same command.
    """
    from pluralbench_release import tell  # noqa: PLC0415 - --help needs none of it

    from build_personalized.training.build import build  # noqa: PLC0415 - the same
    from build_personalized.training.card import figures_tables, persona_note  # noqa: PLC0415 - the same
    from build_personalized.training.recipe import RECIPES, TrainingRecipe  # noqa: PLC0415 - the same

    overrides: dict[str, Any] = {
        "name": name,
        "title": title,
        "source.locations": source,
        "source.columns": column_names(column),
        "source.name": source_name,
        "source.licence": licence,
        "source.limit": limit,
        "against": _against(against),
        "min_posts": min_posts,
        "splits.shares": shares,
        "splits.own": own_splits,
        "seed": seed,
        "connection.max_cost": max_cost,
        **connection_values(price, pending, results, batch=batch),
        **_persona_overrides(persona_llm, base_url, api_key_env),
    }
    own = "sample" if source in (None, ["sample"]) else "own"
    asked = read_recipe(TrainingRecipe, recipe_path(recipe or own, RECIPES), overrides)
    target = out or Path("dist") / asked.name
    cluster = cluster_of(on, workers, per_worker_gpus)
    built = build(asked, target, replay=replay, reuse=reuse, retry_errors=retry_errors, fresh=fresh, cluster=cluster)
    notes = ["", persona_note(asked)]
    tell(console, target, built.manifest, built.new_calls, figures_tables(built.figures), notes=notes)


def _against(benchmarks: list[str] | None) -> list[str] | None:
    if benchmarks is None or NOTHING not in benchmarks:
        return benchmarks
    if len(benchmarks) > 1:
        raise RecipeError(f"--against {NOTHING} compares with no benchmark, so it cannot stand beside another.")
    return []


def _persona_overrides(model: str | None, base_url: str | None, api_key_env: str | None) -> dict[str, Any]:
    if model is None:
        if base_url is not None:
            raise RecipeError("--base-url says where a model is served; say which one with --persona-llm.")
        return {"connection.api_key_env": api_key_env}
    if model in OWN_PROVIDERS:
        return {"persona.provider": model, "persona.model": model}
    return chosen_model("persona", model, base_url, api_key_env, LOCAL_SAMPLING)
