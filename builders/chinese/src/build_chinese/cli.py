"""The command `build-chinese` and its four verbs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from pluralbench_calls import chosen_model
from pluralbench_calls.options import ApiKeyEnv, BaseUrl, Batch, Import, Pending, TokenPrice, connection_values
from pluralbench_runs import RecipeError, read_recipe, recipe_path, replaceable, run
from pluralbench_runs.options import (
    Account,
    Annotator,
    AsAssigned,
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
    account_names,
    cluster_of,
    of_one_source,
    recipe_defaults,
    refuse_before_verb,
)
from pluralbench_schemas import TableError
from rich.console import Console

if TYPE_CHECKING:
    from build_chinese.recipe import ChineseRecipe

EXAMPLES = """\
Examples:

build-chinese

build-chinese tasks --prompts prompts.jsonl --responses responses.jsonl --taxonomy taxonomy.toml --annotator an
--annotator bo --annotator chen --annotator ding --annotator e --out tasks

build-chinese annotations export.json --tasks tasks --out annotated.jsonl

build-chinese resolve annotated.jsonl --out ranked.jsonl

build-chinese preference --annotated annotated.jsonl --prompts more.jsonl --judge gpt-5-mini --reward-base qwen3-0.6b
--out dist/chinese
"""
LOCAL_JUDGE = {"seeded": True, "temperature": 0.0, "max_tokens": 64, "reply": "structured"}
LOCAL_WRITER = {"seeded": True, "temperature": 0.7, "max_tokens": 256}

app = typer.Typer(rich_markup_mode="rich", invoke_without_command=True, epilog=EXAMPLES)
console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
RecipeName = Annotated[
    str | None,
    typer.Option("--recipe", help="`sample`, `paper`, or a TOML file; without it `sample`, or `paper` for own files."),
]

# What --help shows of the recipes.
KEYS = {
    "judge": Key("judge.model"),
    "reward_base": Key("reward.base"),
    "margin": Key("reward.margin", 0.0),
    "distant": Key("preference.distant", True),
    "length": Key("preference.length", True),
    "human": Key("preference.human", True),
    "limit": Key("unlabelled.limit"),
    "price": Key("connection.price"),
    "max_cost": Key("connection.max_cost"),
    "seed": Key("seed"),
}


def main() -> NoReturn:
    """Entry point of the command."""
    defaults = recipe_defaults(Path(__file__).parent / "recipes", KEYS)
    run(app, "build-chinese", mistakes=(TableError,), defaults=defaults)


@app.callback()
def command(
    context: typer.Context,
    recipe: Annotated[str, typer.Option(help="`sample`, `paper`, or a TOML file.")] = "sample",
    out: Out = None,
    name: Name = None,
    seed: Seed = None,
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
    """Build CheemsBench: Chinese prompts whose responses people and models ranked, conflicts resolved.

    Without a verb it builds a recipe, and without a recipe it runs the sample in this package through all four verbs,
    with no model and no network. The verbs are the steps of a project of one's own, in this order: tasks, annotations,
    resolve, preference. Each has a --help.
    """
    if context.invoked_subcommand is not None:
        refuse_before_verb(context, "build-chinese")
        return
    asked = _asked(
        recipe, {"name": name, "seed": seed, **connection_values(None, pending, results, batch=batch)}, own=None
    )
    target = replaceable(out or Path("dist") / asked.name)
    if recipe == "sample":
        _sample_steps(asked, target, fresh=fresh)
    cluster = cluster_of(on, workers, per_worker_gpus)
    _build(asked, target, replay=replay, reuse=reuse, retry_errors=retry_errors, fresh=fresh, cluster=cluster)


@app.command(epilog="Example: build-chinese tasks --prompts p.jsonl --responses r.jsonl --annotator an --annotator bo")
def tasks(
    recipe: RecipeName = None,
    prompts: Annotated[str | None, typer.Option(help="JSONL with id, input, category and config, or `sample`.")] = None,
    responses: Annotated[str | None, typer.Option(help="JSONL with prompt, id, content and model.")] = None,
    taxonomy: Annotated[str | None, typer.Option(help="TOML with the categories of --prompts, or `sample`.")] = None,
    writer: Annotated[
        list[str] | None,
        typer.Option(help="A model that answers prompts: `local` or one of --base-url; repeatable."),
    ] = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    annotator: Annotator = None,
    overlap: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of the tasks that a second annotator gets too.")
    ] = None,
    checks: Annotated[str | None, typer.Option(help="JSONL with the task and the right marks of check items.")] = None,
    check_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="How many check items are hidden among the tasks, as a share.")
    ] = None,
    seed: Seed = None,
    price: TokenPrice = None,
    max_cost: MaxCost = None,
    pending: Pending = None,
    results: Import = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the tasks; without it dist/NAME-tasks.")] = None,
    replay: ReplayFrom = None,
    reuse: ReuseFrom = None,
    *,
    retry_errors: RetryErrors = False,
    batch: Batch = False,
    fresh: Fresh = False,
) -> None:
    """Make annotation tasks: screen responses, show them in triples, give each triple to an annotator."""
    from build_chinese import steps, terminal  # noqa: PLC0415 - --help needs none of it

    overrides: dict[str, Any] = {
        "prompts.location": prompts,
        "prompts.responses": responses,
        "prompts.taxonomy": taxonomy,
        "prompts.checks": checks,
        "writers": _writers(writer, base_url, api_key_env),
        "connection.base_url": base_url,
        "connection.api_key_env": api_key_env,
        "connection.max_cost": max_cost,
        "annotators": annotator,
        "tasks.overlap": overlap,
        "tasks.check_share": check_share,
        "seed": seed,
        **connection_values(price, pending, results, batch=batch),
    }
    asked = _asked(recipe, overrides, own=prompts)
    target = out or Path("dist") / f"{asked.name}-tasks"
    made = steps.make_tasks(asked, target, replay=replay, reuse=reuse, retry_errors=retry_errors, fresh=fresh)
    terminal.tell_tasks(console, made, target)


@app.command(epilog="Example: build-chinese annotations export.json --tasks dist/tasks --out annotated.jsonl")
def annotations(
    files: Annotated[list[Path], typer.Argument(help="Label Studio's export (.json), sheets (.csv) or JSONL.")],
    tasks: Annotated[Path, typer.Option(help="The folder that `build-chinese tasks` wrote.")],
    out: Annotated[Path, typer.Option(help="JSONL to write, in the published fields.")],
    again: Annotated[
        list[Path] | None,
        typer.Option(help="What was marked once more, or by a third annotator, on sheets that this verb wrote."),
    ] = None,
    review: Annotated[
        list[Path] | None, typer.Option(help="A reviewer's marks, on the sheet that this verb wrote.")
    ] = None,
    account: Account = None,
    *,
    assigned: AsAssigned = False,
) -> None:
    """Read annotations, check them against the tasks, and say how far annotators agree.

    What two annotators differ on goes back to them where they agree on less than 90 % (`least_agreement` under [tasks]
    of the tasks' recipe), then to a third annotator; what is left is discussed. Once nothing is open, a reviewer marks
    30 % of the tasks (`review_share`).
    """
    from build_chinese import steps, terminal  # noqa: PLC0415 - --help needs none of it

    more, reviewer = again or [], review or []
    found = steps.read_annotations(
        files, tasks, again=more, review=reviewer, accounts=account_names(account), assigned=assigned
    )
    report = steps.write_annotated(found, out, [*files, *more, *reviewer, *sorted(tasks.glob("*.jsonl"))])
    terminal.tell_annotated(console, found, out, report)


@app.command(epilog="Example: build-chinese resolve annotated.jsonl --out ranked.jsonl")
def resolve(
    file: Annotated[Path, typer.Argument(help="JSONL with input, responses and annotations.")],
    out: Annotated[Path, typer.Option(help="JSONL to write, with rank and order.")],
) -> None:
    """Turn conflicting annotations into ranks without conflict: cycles merge, layers are ranks."""
    from build_chinese import steps, terminal  # noqa: PLC0415 - --help needs none of it

    terminal.tell_resolved(console, steps.resolve_file(file, out), out)


@app.command(
    epilog="Example: build-chinese preference --annotated a.jsonl --prompts p.jsonl --judge gpt-5 --no-distant"
)
def preference(
    recipe: RecipeName = None,
    annotated: Annotated[
        str | None, typer.Option(help="Prompts that people annotated, as `annotations` writes them, or `sample`.")
    ] = None,
    prompts: Annotated[str | None, typer.Option(help="Prompts with responses that the judge votes on.")] = None,
    taxonomy: Annotated[str | None, typer.Option(help="TOML with the categories of --prompts, or `sample`.")] = None,
    judge: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="`recorded` (the sample's votes), `local`, or a model of --base-url."),
    ] = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    reward_base: Annotated[
        str | None, typer.Option(help="Folder of the model that is trained on the human part and filters the votes.")
    ] = None,
    margin: Annotated[float | None, typer.Option(min=0, help="A vote stays if rewards differ by more.")] = None,
    distant: Annotated[
        bool | None, typer.Option("--distant/--no-distant", help="Filter votes by the reward model.")
    ] = None,
    length: Annotated[
        bool | None,
        typer.Option("--length/--no-length", help="Balance pairs by whether the better response is longer."),
    ] = None,
    human: Annotated[bool | None, typer.Option("--human/--no-human", help="Put the human part into the set.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many of --prompts.")] = None,
    seed: Seed = None,
    price: TokenPrice = None,
    max_cost: MaxCost = None,
    pending: Pending = None,
    results: Import = None,
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
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Then train on each variant of the set and measure it on the benchmarks.")
    ] = False,
    retry_errors: RetryErrors = False,
    batch: Batch = False,
    fresh: Fresh = False,
) -> None:
    """Build the preference set by distant supervision, and the benchmarks beside it, as a release."""
    overrides: dict[str, Any] = {
        "name": name,
        "title": title,
        "annotated.location": annotated,
        "unlabelled.location": prompts,
        "unlabelled.taxonomy": taxonomy,
        "unlabelled.limit": limit,
        "reward.base": reward_base,
        "reward.margin": margin,
        "preference.distant": distant,
        "preference.length": length,
        "preference.human": human,
        "connection.base_url": base_url,
        "connection.api_key_env": api_key_env,
        "connection.max_cost": max_cost,
        "seed": seed,
        **connection_values(price, pending, results, batch=batch),
        **_judge(judge, base_url, api_key_env),
    }
    tables = {"annotated": annotated, "unlabelled": prompts}
    given = [table for table, location in tables.items() if location is not None]
    told = of_one_source(given, source_name, licence)
    overrides |= {f"{table}.{key}": value for table in given for key, value in told.items()}
    asked = _asked(recipe, overrides, own=annotated or prompts)
    target = out or Path("dist") / asked.name
    cluster = cluster_of(on, workers, per_worker_gpus)
    _build(asked, target, replay=replay, reuse=reuse, retry_errors=retry_errors, fresh=fresh, cluster=cluster)
    if ablate:
        from pluralbench_release import tell_table  # noqa: PLC0415 - --help needs none of it

        from build_chinese import ablation  # noqa: PLC0415 - the same
        from build_chinese.build import people  # noqa: PLC0415 - the same

        path = ablation.ablate(target, asked, *people(asked), fresh=fresh)
        tell_table(console, f"Ablation ({path})", ablation.table(path))


def _build(asked: "ChineseRecipe", target: Path, **how: Any) -> None:
    from pluralbench_release import tell  # noqa: PLC0415 - --help needs none of it

    from build_chinese.build import build  # noqa: PLC0415 - the same
    from build_chinese.figures import figures_tables  # noqa: PLC0415 - the same

    built = build(asked, target, **how)
    tell(
        console,
        target,
        built.manifest,
        built.new_calls,
        figures_tables(built.figures),
        following=[f"pluralbench score MODEL --benchmark chinese --data {target}  (pip install pluralbench)"],
    )


def _asked(recipe: str | None, overrides: dict[str, Any], *, own: str | None) -> "ChineseRecipe":
    """The recipe of a verb. Own files are not mixed with the sample's."""
    from build_chinese.recipe import RECIPES, SAMPLE, ChineseRecipe  # noqa: PLC0415 - --help needs none of it

    name = recipe or (SAMPLE if own in {None, SAMPLE} else "paper")
    return read_recipe(ChineseRecipe, recipe_path(name, RECIPES), overrides)


def _sample_steps(asked: "ChineseRecipe", target: Path, *, fresh: bool) -> None:
    """The verbs that come before the release, on the sample, each into a file or folder beside it."""
    from build_chinese import steps, terminal  # noqa: PLC0415 - --help needs none of it

    folder = target.with_name(f"{target.name}-tasks")
    annotated, ranked = (target.with_name(f"{target.name}-{name}.jsonl") for name in ("annotated", "ranked"))
    made = steps.make_tasks(asked, folder, fresh=fresh)
    terminal.tell_tasks(console, made, folder)
    found = steps.read_annotations([steps.SAMPLE_ANNOTATIONS], folder)
    terminal.tell_annotated(console, found, annotated, steps.write_annotated(found, annotated))
    terminal.tell_resolved(console, steps.resolve_file(annotated, ranked), ranked)


def _writers(names: list[str] | None, base_url: str | None, api_key_env: str | None) -> list[dict[str, Any]] | None:
    if not names:
        if base_url is not None:
            raise RecipeError("--base-url says where models are served; say which ones with --writer.")
        return None
    chosen = [chosen_model("writer", name, base_url, api_key_env, LOCAL_WRITER) for name in names]
    return [
        {key.removeprefix("writer."): value for key, value in changes.items() if key.startswith("writer.")}
        for changes in chosen
    ]


def _judge(name: str | None, base_url: str | None, api_key_env: str | None) -> dict[str, Any]:
    if name is None:
        if base_url is not None:
            raise RecipeError("--base-url says where a model is served; say which one with --judge.")
        return {}
    if name == "recorded":
        return {"judge.provider": name, "judge.model": "invented-judge"}
    return chosen_model("judge", name, base_url, api_key_env, LOCAL_JUDGE)
