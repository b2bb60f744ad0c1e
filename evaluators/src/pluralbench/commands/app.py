"""The command `pluralbench`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from pluralbench_runs import run
from rich.console import Console

from pluralbench.commands import judge_metrics
from pluralbench.data.benchmarks import PERSONA_JUDGE
from pluralbench.evaluation.compare import compare as compare_runs
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.judge import Orders
from pluralbench.evaluation.judge import judge as judge_benchmark
from pluralbench.commands.options import (
    BenchmarkName,
    Column,
    Config,
    Data,
    English,
    Fresh,
    Legacy,
    Limit,
    OnEmptyOption,
    Out,
    Plans,
    ProfileOption,
    ProfileSize,
    Seed,
    Split,
    persona_options,
    price_of,
    refuse_persona_options,
)
from pluralbench.evaluation.personas import Variables, judge_personas
from pluralbench.data.persona_prompts import Setting
from pluralbench.reports.report import Format, notes, render
from pluralbench.results.runs import VERDICTS_FILE, Run, read_run
from pluralbench.evaluation.score import score as score_benchmark

SCORE_EXAMPLES = """\
Examples:

pluralbench score Skywork/Skywork-Reward-V2-Llama-3.2-1B --benchmark personalized

pluralbench score ./my-model --data dist/personalized-rewardbench --profile raw --out runs/mine

pluralbench score ./policy --kind implicit --reference ./base --benchmark pairs --data pairs.jsonl
"""
JUDGE_EXAMPLES = """\
Examples:

pluralbench judge gpt-5-mini --benchmark personalized --limit 50 --price 0.25/2 --max-cost 1

pluralbench judge my-model --base-url http://localhost:8000/v1 --data dist/personalized-rewardbench --oracle

pluralbench judge gpt-5-mini --benchmark persona-judge --data dist/persona-judge --setting certainty --samples 200
"""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="Score reward models on benchmarks in which better depends on who is asking.",
)
app.command("judge-metrics", epilog=judge_metrics.EXAMPLES)(judge_metrics.command)
console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def main() -> NoReturn:
    """Entry point of the command."""
    run(app)


@app.command(epilog=SCORE_EXAMPLES)
def score(
    model: Annotated[str, typer.Argument(help="A folder, or ORG/NAME on the Hub.")],
    benchmark: BenchmarkName = "personalized",
    data: Data = None,
    config: Config = None,
    split: Split = None,
    column: Column = None,
    limit: Limit = None,
    on_empty: OnEmptyOption = None,
    english: English = None,
    kind: Annotated[
        Literal["classifier", "implicit"],
        typer.Option(help="implicit: log-probability of the response under a language model."),
    ] = "classifier",
    reference: Annotated[str | None, typer.Option(help="The model that an implicit one was trained from.")] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Which of several logits is the reward: logit:K, or softmax:K for its probability."),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Of the model on the Hub.")] = None,
    chat_template: Annotated[
        Path | None, typer.Option(help="A Jinja file instead of the tokenizer's template.")
    ] = None,
    profile: ProfileOption = "none",
    profile_size: ProfileSize = 10,
    plans: Plans = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, or spread over all GPUs.")] = "auto",
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"], typer.Option(help="Precision; auto is as it was saved.")
    ] = "auto",
    mode: Annotated[
        Literal["fast", "exact"],
        typer.Option(help="fast computes a shared prompt once; exact each conversation by itself."),
    ] = "fast",
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a conversation; without it the model's limit.")
    ] = None,
    on_overflow: Annotated[
        Literal["error", "drop", "truncate-left", "truncate-prompt"], typer.Option(help="What to do with longer ones.")
    ] = "error",
    token_budget: Annotated[int | None, typer.Option(min=1, help="Tokens in a batch.")] = None,
    seed: Seed = 0,
    out: Out = None,
    *,
    legacy: Legacy = False,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Run Python code that comes with the model, with your rights."),
    ] = False,
    fresh: Fresh = False,
) -> None:
    """Score a reward model on a benchmark.

    Writes a run directory with every item's scores, the metrics, and where they come from. An interrupted run goes on
    with the same command.
    """
    done = score_benchmark(
        model,
        benchmark=benchmark,
        data=data,
        configs=config,
        split=split,
        columns=column or (),
        limit=limit,
        on_empty=on_empty,
        legacy=legacy,
        english=english,
        kind=kind,
        reference=reference,
        label=label,
        revision=revision,
        trust_remote_code=trust_remote_code,
        chat_template=chat_template,
        profile=profile,
        profile_size=profile_size,
        plans=plans,
        device=device,
        dtype=dtype,
        mode=mode,
        max_length=max_length,
        on_overflow=on_overflow,
        token_budget=token_budget,
        seed=seed,
        out=out,
        fresh=fresh,
    )
    _tell(done)


@app.command(epilog=JUDGE_EXAMPLES)
def judge(
    ctx: typer.Context,
    model: Annotated[str, typer.Argument(help="A model of --base-url, or `local`, the small embedded one.")],
    benchmark: BenchmarkName = "personalized",
    data: Data = None,
    config: Config = None,
    split: Split = None,
    column: Column = None,
    limit: Limit = None,
    on_empty: OnEmptyOption = None,
    english: English = None,
    base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint; without it OpenAI.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the endpoint's key; OPENAI_API_KEY for OpenAI.")
    ] = None,
    orders: Annotated[
        Orders,
        typer.Option(
            help="both: asked twice with the answers swapped; one (the persona judge's default): in an order drawn by "
            "the seed, or as the data places them."
        ),
    ] = "both",
    reply: Annotated[
        Literal["reasoned", "brief", "structured"],
        typer.Option(
            help="With reasons, the verdict alone (the persona judge's default), or JSON by a schema that the server "
            "enforces."
        ),
    ] = "reasoned",
    profile: ProfileOption = "none",
    profile_size: ProfileSize = 10,
    plans: Plans = None,
    answer_language: Annotated[
        Literal["target", "english"],
        typer.Option(help="Which language multilingual's judges expect; english is what the authors' runner says."),
    ] = "target",
    setting: Annotated[
        Setting, typer.Option(help="persona-judge: a choice alone, with a certainty, or with a tie as an answer.")
    ] = "certainty",
    variables: Annotated[
        Variables, typer.Option(help="persona-judge: which of the persona's variables the judge is told.")
    ] = "all",
    samples: Annotated[
        int | None, typer.Option(min=1, help="persona-judge: at most so many items of each task, drawn by the seed.")
    ] = None,
    temperature: Annotated[
        float,
        typer.Option(min=0, help="Of the first try; each further one is warmer. persona-judge: 0.7 at every try."),
    ] = 0.0,
    top_p: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Nucleus sampling; not sent without it. persona-judge: 0.95."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a reply.")] = 512,
    attempts: Annotated[int, typer.Option(min=1, help="Tries for a reply that can be parsed.")] = 4,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests at once.")] = 8,
    price: Annotated[
        str | None, typer.Option(metavar="IN/OUT", help="US dollars for a million tokens in and out, such as 0.25/2.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Spending ceiling in US dollars, by --price.")] = None,
    seed: Seed = 0,
    out: Out = None,
    *,
    legacy: Legacy = False,
    pointwise: Annotated[bool, typer.Option("--pointwise", help="Rate each answer by itself, from 1 to 10.")] = False,
    oracle: Annotated[bool, typer.Option("--oracle", help="Show the judge the true rubric aspects.")] = False,
    fresh: Fresh = False,
) -> None:
    """Let a language model judge a benchmark.

    Every call is recorded in the run directory, so an interrupted run goes on with the same command and asks nothing
    twice. A verdict that cannot be parsed after --attempts tries counts as invalid, never as an answer.
    """
    if benchmark == PERSONA_JUDGE:
        _tell(judge_personas(model, **persona_options(ctx)))
        return
    refuse_persona_options(ctx)
    done = judge_benchmark(
        model,
        benchmark=benchmark,
        data=data,
        configs=config,
        split=split,
        columns=column or (),
        limit=limit,
        on_empty=on_empty,
        legacy=legacy,
        english=english,
        base_url=base_url,
        api_key_env=api_key_env,
        pointwise=pointwise,
        reply=reply,
        orders=orders,
        oracle=oracle,
        profile=profile,
        profile_size=profile_size,
        plans=plans,
        answer_language=answer_language,
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        attempts=attempts,
        concurrency=concurrency,
        price=price_of(price),
        max_cost=max_cost,
        seed=seed,
        out=out,
        fresh=fresh,
    )
    _tell(done)


@app.command(epilog="Example:\n\npluralbench compare runs/a runs/b")
def compare(
    first: Annotated[Path, typer.Argument(help="A run directory.")],
    second: Annotated[Path, typer.Argument(help="Another one, on the same items.")],
    seed: Seed = 0,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two runs on the decisions they share, by a paired test."""
    found = compare_runs(read_run(first), read_run(second), seed=seed)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
        return
    low, high = found.interval
    console.print(f"{found.decisions:,} decisions on {found.clusters:,} prompts or users")
    console.print(f"  {found.first}: {found.accuracy_first:.1%}, {found.only_first:,} that only it gets right")
    console.print(f"  {found.second}: {found.accuracy_second:.1%}, {found.only_second:,} that only it gets right")
    console.print(
        f"Difference {100 * found.difference:+.1f} points, 95% interval {100 * low:+.1f} to {100 * high:+.1f}, "
        f"p = {found.p_value:.3g}"
    )
    if found.left_out:
        console.print(f"{found.left_out:,} decisions are only in one of the two runs and were left out.")


@app.command(
    epilog="Examples:\n\npluralbench report runs/*\n\npluralbench report runs/a runs/b --format csv --out table.csv\n\n"
    "pluralbench report runs/multilingual-* --plots figures"
)
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.")],
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = "table",
    out: Annotated[Path | None, typer.Option(help="A file to write instead of the terminal.")] = None,
    plots: Annotated[
        Path | None, typer.Option(help="A folder for figures by language or category, as PNG and SVG.")
    ] = None,
) -> None:
    """Show what runs found, in one table, and draw what there is to see by language or category."""
    # A shell's `runs/*` has the working directories of unfinished runs among its paths.
    read = [read_run(path) for path in runs if path.suffix != ".work"]
    rendered = render(read, "markdown" if out is not None and form == "table" else form)
    if out is not None:
        try:
            out.write_text(f"{str(rendered).rstrip()}\n", encoding="utf-8")
        except OSError as error:
            raise EvaluationError(f"{out} cannot be written: {error.strerror}.") from None
        console.print(f"Wrote {out}")
    elif isinstance(rendered, str):
        typer.echo(rendered.rstrip())
    else:
        console.print(rendered)
        for note in notes(read):
            console.print(note)
    if plots is not None:
        _draw(read, plots)


def _draw(runs: list[Run], folder: Path) -> None:
    from pluralbench.reports.figures.draw import draw, font_notes  # noqa: PLC0415 - figures are drawn by few

    try:
        written = draw(runs, folder)
    except OSError as error:
        raise EvaluationError(f"{folder} cannot be written: {error.strerror}.") from None
    for path in written:
        console.print(f"Wrote {path}")
    for note in font_notes(runs):
        console.print(note)


def _tell(done: Run) -> None:
    console.print()
    console.print(render([done], "table"))
    for note in notes([done]):
        console.print(note)
    scoring = done.run.get("scoring")
    if scoring and scoring["seconds"]:
        saved = scoring["computed_tokens"] / max(scoring["unique_tokens"], 1)
        console.print(
            f"Mode {scoring['mode']}: {scoring['computed_tokens']:,} tokens computed, {saved:.2f} for each unique one, "
            f"in {scoring['seconds']:.1f} s; scores of other modes lie within {scoring['tolerance']:.2g}."
        )
    ignored = done.run["data"]["ignored_columns"]
    if ignored:
        console.print(f"Columns that are not read: {', '.join(ignored)}.")
    empty = done.run["data"]["empty"]
    if empty:
        kept = {"keep": "kept", "drop": "dropped"}[done.run["data"]["on_empty"]]
        named = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
        console.print(f"{len(empty):,} items with an empty prompt or response were {kept} (ids {named}).")
    verdicts = done.path / VERDICTS_FILE
    further = f", {VERDICTS_FILE} (see pluralbench judge-metrics {verdicts})" if verdicts.exists() else ""
    console.print(f"\n{done.path}: items.parquet, metrics.json, run.json{further}")
