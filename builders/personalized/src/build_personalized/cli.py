"""The command `build-personalized` and its verbs `rate` and `training`."""

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pluralbench_calls import chosen_model
from pluralbench_calls.options import ApiKeyEnv, BaseUrl, Batch, Import, Pending, TokenPrice, connection_values
from pluralbench_runs import RecipeError, read_recipe, recipe_path, run
from pluralbench_runs.options import (
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
    recipe_defaults,
    refuse_before_verb,
)
from pluralbench_schemas import TableError
from rich.console import Console

from build_personalized.rating import cli as rating
from build_personalized.training import cli as training

# A model this small rambles when it is hot, and what passes the limit of words is thrown away.
LOCAL_SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224, "aspects_max_tokens": 640}

EXAMPLES = """\
Examples:

build-personalized

build-personalized --llm local --limit 2 --out dist/local

build-personalized --source stack-exchange:beer.stackexchange.com/Posts.xml --llm gpt-5-mini --out dist/beer

build-personalized rate --release dist/beer --export ratings --annotator an --annotator bo --annotator cy

build-personalized training --source arena --persona-llm gpt-5-mini --out dist/arena
"""

app = typer.Typer(rich_markup_mode="rich", invoke_without_command=True, epilog=EXAMPLES)
console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

# What --help shows of the recipes.
KEYS = {
    "source": Key("source.locations"),
    "llm": Key("llm.model"),
    "retriever": Key("retriever", "bm25"),
    "profile_size": Key("profile_size", 10),
    "limit": Key("source.limit"),
    "price": Key("connection.price"),
    "max_cost": Key("connection.max_cost"),
    "seed": Key("seed"),
}


def main() -> NoReturn:
    """Entry point of the command."""
    defaults = recipe_defaults(Path(__file__).parent / "recipes", KEYS)
    verbs = {"rate": rating.DEFAULTS, "training": training.defaults()}
    run(app, "build-personalized", mistakes=(TableError,), defaults=defaults, verbs=verbs)


@app.callback()
def command(
    context: typer.Context,
    recipe: Annotated[str, typer.Option(help="`sample`, `paper`, or a TOML file.")] = "sample",
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="`sample`, `lamp-qa`, `lamp-qa:DIRECTORY`, `lamp-qa:ORG/NAME@REVISION` or "
            "`stack-exchange:POSTS_XML`; repeatable."
        ),
    ] = None,
    source_name: SourceName = None,
    licence: Licence = None,
    out: Out = None,
    name: Name = None,
    title: Title = None,
    llm: Annotated[
        str | None, typer.Option(help="`hand-written`, `local` (the embedded model), or a model of --base-url.")
    ] = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    retriever: Annotated[
        str | None, typer.Option(help="`bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.")
    ] = None,
    profile_size: Annotated[int | None, typer.Option(min=1, help="Posts of a profile that go into a prompt.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many items of each config.")] = None,
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
    """Build Personalized RewardBench: pairs of answers that differ in whether they keep to one person's rubric.

    Without options it builds the sample in this package, with no model and no network. An interrupted build goes on
    with the same command. The verb `rate` has people rate both answers of its pairs; `training` builds what
    personalized reward models learn from instead.
    """
    if context.invoked_subcommand is not None:
        refuse_before_verb(context, "build-personalized")
        return
    from pluralbench_release import tell  # noqa: PLC0415 - --help needs none of it

    from build_personalized.build import build  # noqa: PLC0415 - the same
    from build_personalized.card import figures_tables, generator_note  # noqa: PLC0415 - the same
    from build_personalized.recipe import RECIPES, PersonalizedRecipe  # noqa: PLC0415 - the same

    overrides: dict[str, Any] = {
        "name": name,
        "title": title,
        "source.locations": source,
        "source.name": source_name,
        "source.licence": licence,
        "source.limit": limit,
        "retriever": retriever,
        "profile_size": profile_size,
        "seed": seed,
        "connection.max_cost": max_cost,
        **connection_values(price, pending, results, batch=batch),
        **_llm_overrides(llm, base_url, api_key_env),
    }
    asked = read_recipe(PersonalizedRecipe, recipe_path(recipe, RECIPES), overrides)
    target = out or Path("dist") / asked.name
    cluster = cluster_of(on, workers, per_worker_gpus)
    built = build(asked, target, replay=replay, reuse=reuse, retry_errors=retry_errors, fresh=fresh, cluster=cluster)
    notes = ["", generator_note(asked)]
    tell(console, target, built.manifest, built.new_calls, figures_tables(built.figures), notes=notes)


app.command("rate", epilog=rating.EXAMPLES)(rating.rate)
app.command("training", epilog=training.EXAMPLES)(training.training)


def _llm_overrides(llm: str | None, base_url: str | None, api_key_env: str | None) -> dict[str, Any]:
    overrides: dict[str, Any] = {"connection.base_url": base_url, "connection.api_key_env": api_key_env}
    if llm is None:
        if base_url is not None:
            raise RecipeError("--base-url says where a model is served; say which one with --llm.")
        return overrides
    if llm == "hand-written":
        return overrides | {"llm.provider": llm, "llm.model": llm}
    return overrides | chosen_model("llm", llm, base_url, api_key_env, LOCAL_SAMPLING)
