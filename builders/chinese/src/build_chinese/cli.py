"""The command `build-chinese` and its verbs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pluralbench_calls.chat import model_overrides, resolve_model_option
from pluralbench_runs import (
    BuildOptions,
    ClusterConfig,
    Program,
    RecipeError,
    read_recipe,
    recipe_path,
    resolve_output_path,
    shell_command,
)
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Flag, Options
from pluralbench_runs.program import Verb
from pluralbench_runs.recipe_options import BUILD_COMMON, Overrides, RecipeOptions, check_one_source
from pluralbench_runs.study_options import ReadOptions
from pluralbench_schemas import TableError

from build_chinese.recipe import RECIPES, SAMPLE, ChineseRecipe

LOCAL_JUDGE = {"seeded": True, "temperature": 0.0, "max_tokens": 64, "reply": "structured"}
LOCAL_WRITER = {"seeded": True, "temperature": 0.7, "max_tokens": 256}

HERE = "build_chinese.cli"
program = Program(
    "build-chinese",
    default=Verb(f"{HERE}:command", status="Building the dataset..."),
    verbs={
        "Verbs": {
            name: Verb(f"{HERE}:{name}") for name in ("tasks", "annotations", "resolve", "describe", "preference")
        }
    },
    common=BUILD_COMMON,
    mistakes=(TableError,),
)
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def command(
    *,
    recipe: str = "sample",
    overrides: Annotated[Overrides, RecipeOptions(ChineseRecipe, RECIPES, ("name", "seed", "connection"))],
    cluster: ClusterConfig,
    building: Annotated[BuildOptions, Options("Result")],
) -> None:
    """Build CheemsBench: Chinese prompts with responses that people and models ranked, conflicts resolved.

    Without a verb, this builds a recipe. The default recipe runs the embedded sample through all four verbs, without a
    model and without network. For your own project, run the verbs in this order: tasks, annotations, resolve,
    preference. Each has a --help.

    Args:
        recipe: `sample`, `paper`, or a TOML file.

    Examples:
        build-chinese
        build-chinese tasks --prompts prompts.jsonl --responses responses.jsonl --taxonomy taxonomy.toml --annotator
            an --annotator bo --annotator chen --annotator ding --annotator e --out tasks
        build-chinese annotations export.json --tasks tasks --out annotated.jsonl
        build-chinese resolve annotated.jsonl --out ranked.jsonl
        build-chinese preference --annotated annotated.jsonl --prompts more.jsonl --judge gpt-5-mini --reward-base
            qwen3-0.6b --out dist/chinese
    """
    config = _load_recipe(recipe, overrides, own=None)
    if recipe == "sample":
        _sample_steps(config, resolve_output_path(building.target(config.name)), fresh=building.fresh)
    _build(config, building, cluster)


def tasks(
    *,
    recipe: str | None = None,
    overrides: Annotated[
        Overrides,
        RecipeOptions(ChineseRecipe, RECIPES, ("prompts", "writers", "annotators", "tasks", "seed", "connection")),
    ],
    out: Path | None = None,
    building: Annotated[BuildOptions, Options("Result", ("out",))],
) -> None:
    """Make annotation tasks: screen responses, group them in triples, assign each triple to an annotator.

    Args:
        recipe: `sample`, `paper`, or a TOML file. Default: `sample`, or `paper` for your own files.
        out: Folder for the tasks. Default: dist/NAME-tasks.

    Examples:
        build-chinese tasks --prompts p.jsonl --responses r.jsonl --annotator an --annotator bo
    """
    from build_chinese import console_output, task_folders

    config = _load_recipe(recipe, _with_writers(overrides), own=overrides.get("prompts.location"))
    target = out or Path("dist") / f"{config.name}-tasks"
    prepared = task_folders.make_tasks(config, target, building)
    console_output.print_tasks(console, prepared, target)


def annotations(
    files: Sequence[Path],
    *,
    tasks: Path,
    out: Path,
    again: Sequence[Path] = (),
    review: Sequence[Path] = (),
    reading: ReadOptions,
) -> None:
    """Read annotations, check them against the tasks, and report how far annotators agree.

    If two annotators agree on less than 90 % (`tasks.least_agreement` of the recipe), the tasks on which they differ go
    back to both, then to a third annotator; the rest is discussed. Once no task is open, a reviewer marks 30 % of them,
    and then a second one (`review_share`).

    Args:
        files: Label Studio's export (.json), sheets (.csv) or JSONL.
        tasks: Folder that `build-chinese tasks` wrote.
        out: JSONL file to write, in the published fields.
        again: Filled-in sheet of a later round, once for each: tasks marked again, or by a third annotator.
        review: Filled-in sheet of a reviewer; one for each stage of review.

    Examples:
        build-chinese annotations export.json --tasks dist/tasks --out annotated.jsonl
    """
    from build_chinese import annotated_files, console_output, task_folders

    result = annotated_files.annotate(
        files,
        *task_folders.read_tasks_folder(tasks),
        again=again,
        review=review,
        accounts=reading.account,
        assigned=reading.assigned,
    )
    report = annotated_files.write_annotated(result, out, [*files, *again, *review])
    console_output.print_annotated(console, result, out, report)


def resolve(file: Path, *, out: Path) -> None:
    """Resolve conflicting annotations into ranks: responses on a cycle are merged, layers of the graph are ranks.

    Args:
        file: JSONL with input, responses and annotations.
        out: JSONL file to write, with rank and order.

    Examples:
        build-chinese resolve annotated.jsonl --out ranked.jsonl
    """
    from build_chinese import annotated_files, console_output

    console_output.print_resolved(console, file, annotated_files.resolve_file(file, out), out)


def describe(files: Sequence[Path], *, figure: Annotated[Path | None, Flag(metavar="FILE")] = None) -> None:
    """Print the sizes of published files and the biases of their annotators (CHEEMS, table 1 and figure 15).

    A comparison is two responses of different `rank`. In files without `rank`, it is an annotation that prefers one.

    Args:
        files: JSONL with input and responses, and annotations or rank.
        figure: PNG file to draw figure 15 into.

    Examples:
        build-chinese describe cheems_bench/open.jsonl cheems_bench/human.jsonl --figure bias.png
    """
    from build_chinese import annotated_files, console_output

    if figure is not None:
        annotated_files.check_writable(figure)
    console_output.print_described(console, annotated_files.describe_files(files), figure)


def preference(
    *,
    recipe: str | None = None,
    overrides: Annotated[
        Overrides,
        RecipeOptions(
            ChineseRecipe,
            RECIPES,
            ("name", "title", "annotated", "unlabeled", "judge", "reward", "preference", "seed", "connection"),
        ),
    ],
    ablate: bool = False,
    cluster: ClusterConfig,
    building: Annotated[BuildOptions, Options("Result")],
) -> None:
    """Build the preference set by distant supervision, and the benchmarks, as one release.

    Args:
        recipe: `sample`, `paper`, or a TOML file. Default: `sample`, or `paper` for your own files.
        ablate: Then train on each variant of the set, evaluate it on the benchmarks, and keep the models.

    Examples:
        build-chinese preference --annotated a.jsonl --prompts p.jsonl --judge gpt-5 --no-distant
    """
    locations = {table: overrides.get(f"{table}.location") for table in ("annotated", "unlabeled")}
    named = [table for table, location in locations.items() if location is not None]
    described = {key: overrides[f"annotated.{key}"] for key in ("name", "license") if f"annotated.{key}" in overrides}
    check_one_source(named, described)
    dropped = {f"{table}.{key}" for table in locations if table not in named for key in described}
    values = resolve_model_option(
        {key: value for key, value in overrides.items() if key not in dropped},
        "judge",
        "--judge",
        LOCAL_JUDGE,
        own={"recorded": "invented-judge"},
    )
    config = _load_recipe(recipe, values, own=locations["annotated"] or locations["unlabeled"])
    from build_chinese import ablation
    from build_chinese.build import people

    parts = people(config) if ablate else None
    if parts is not None:
        ablation.check(config, *parts)
    release = _build(config, building, cluster)
    if parts is not None:
        from pluralbench_release import print_table

        path = ablation.ablate(release, config, *parts, fresh=building.fresh)
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        print_table(console, f"Ablation ({path})", ablation.table(rows))
        missing = [row for row in rows if "not_trained" in row]
        for row in missing:
            console.print(f"{row['variant']} was not trained: {row['not_trained'].rstrip('.')}.")
        if len(missing) < len(rows):
            command = ("pluralbench", "score", path.parent / ablation.MODELS / "VARIANT", "--benchmark", "reward-bench")
            console.print("The trained models are kept. To measure one on another benchmark:")
            console.print(f"  {shell_command(*command)}")


def _build(config: ChineseRecipe, building: BuildOptions, cluster: ClusterConfig) -> Path:
    from pluralbench_release import print_summary

    from build_chinese.build import build
    from build_chinese.figures import figures_tables

    built = build(config, building, cluster=cluster)
    score = shell_command("pluralbench", "score", "MODEL", "--benchmark", "chinese", "--data", built.directory)
    print_summary(console, built, figures_tables(built.figures), next_commands=[score])
    return built.directory


def _load_recipe(recipe: str | None, overrides: Overrides, *, own: str | None) -> ChineseRecipe:
    """The recipe of a verb. Own files are not mixed with the sample's."""
    name = recipe or (SAMPLE if own in {None, SAMPLE} else "paper")
    return read_recipe(ChineseRecipe, recipe_path(name, RECIPES), overrides)


def _sample_steps(config: ChineseRecipe, target: Path, *, fresh: bool) -> None:
    """Run the verbs that precede the release on the sample; their files go next to the release."""
    from build_chinese import annotated_files, console_output, task_folders

    folder = target.with_name(f"{target.name}-tasks")
    annotated, ranked = (target.with_name(f"{target.name}-{name}.jsonl") for name in ("annotated", "ranked"))
    prepared = task_folders.make_tasks(config, folder, BuildOptions(fresh=fresh))
    console_output.print_tasks(console, prepared, folder)
    result = annotated_files.annotate([annotated_files.SAMPLE_ANNOTATIONS], *task_folders.read_tasks_folder(folder))
    console_output.print_annotated(console, result, annotated, annotated_files.write_annotated(result, annotated))
    console_output.print_resolved(console, annotated, annotated_files.resolve_file(annotated, ranked), ranked)


def _with_writers(overrides: Overrides) -> Overrides:
    """The options, with models in place of the writers' names."""
    url, key = overrides.get("connection.base_url"), overrides.get("connection.api_key_env")
    if "writers" not in overrides:
        if url is not None:
            raise RecipeError("--base-url needs the names of the models it serves; name them with --writer.")
        return overrides
    chosen = [model_overrides("writer", writer["model"], url, key, LOCAL_WRITER) for writer in overrides["writers"]]
    writers = [
        {name.removeprefix("writer."): value for name, value in model.items() if name.startswith("writer.")}
        for model in chosen
    ]
    return overrides | {"writers": writers}
