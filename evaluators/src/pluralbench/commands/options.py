"""Options that `score` and `judge` have in common, and those that the persona judge takes of them."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pluralbench_calls import Price
from pluralbench_runs import RecipeError

from pluralbench.data.benchmarks import PERSONA_JUDGE

DATA = "Data"
PROMPT = "Prompt"
RESULT = "Result"

BenchmarkName = Annotated[
    str,
    typer.Option(
        "--benchmark",
        help="personalized, multilingual, reward-bench, chinese, pandalm, pairs, rankings, persona-judge (which only "
        "`judge` takes), or a TOML file.",
        rich_help_panel=DATA,
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|FILE|ORG/NAME[@REVISION]", help="Where the items are; without it on the Hub.", rich_help_panel=DATA
    ),
]
Config = Annotated[
    list[str] | None, typer.Option(help="Only this config; may be given more than once.", rich_help_panel=DATA)
]
Split = Annotated[str | None, typer.Option(help="Another split than the benchmark's.", rich_help_panel=DATA)]
Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT=COLUMN", help="Which column is what, such as prompt=text; repeatable.", rich_help_panel=DATA
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many items of each config.", rich_help_panel=DATA)]
OnEmptyOption = Annotated[
    Literal["error", "drop", "keep"] | None,
    typer.Option(
        "--on-empty",
        help="What to do with an empty prompt or response; without it error for data of your own.",
        rich_help_panel=DATA,
    ),
]
Legacy = Annotated[
    bool,
    typer.Option("--legacy", help="Count as the authors' code does: multilingual, chinese.", rich_help_panel=DATA),
]
English = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|FILE|ORG/NAME[@REVISION]",
        help="The English original of multilingual data that has none, for the drop from English.",
        rich_help_panel=DATA,
    ),
]
ProfileOption = Annotated[
    Literal["none", "raw", "plan"],
    typer.Option(
        "--profile", help="Tell the model the person's posts, or what a planner inferred.", rich_help_panel=PROMPT
    ),
]
ProfileSize = Annotated[int, typer.Option(min=1, help="Posts of a profile.", rich_help_panel=PROMPT)]
Plans = Annotated[
    Path | None, typer.Option(help="JSON Lines with id and aspects, for --profile plan.", rich_help_panel=PROMPT)
]
Seed = Annotated[int, typer.Option(help="Seed of the bootstrap and of every draw.", rich_help_panel=RESULT)]
Out = Annotated[Path | None, typer.Option(help="Run directory; without it under runs/.", rich_help_panel=RESULT)]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start over, and replace what other settings made.", rich_help_panel=RESULT)
]
# What the persona judge takes of the options of `judge`, and what is its own.
PERSONA_OWN = {"setting", "variables", "samples"}
PERSONA_TAKES = PERSONA_OWN | {
    *("benchmark", "data", "config", "split", "base_url", "api_key_env", "orders", "reply", "temperature", "top_p"),
    *("max_tokens", "attempts", "concurrency", "price", "max_cost", "seed", "out", "fresh"),
}


def _given(ctx: typer.Context) -> dict[str, tuple[str, Any]]:
    """The flag and the value of each option that stands on the command line, by the name of its parameter."""
    return {
        parameter.name: (max(parameter.opts, key=len), ctx.params[parameter.name])
        for parameter in ctx.command.params
        if parameter.param_type_name == "option" and parameter.name in ctx.params
        # An enumeration of the library below, whose place differs between versions.
        if getattr(ctx.get_parameter_source(parameter.name), "name", "DEFAULT") not in {"DEFAULT", "DEFAULT_MAP"}
    }


def refuse_persona_options(ctx: typer.Context) -> None:
    """Raise `RecipeError` where an option that only the persona judge has stands on the command line."""
    own = [flag for name, (flag, _) in _given(ctx).items() if name in PERSONA_OWN]
    if own:
        raise RecipeError(f"{own[0]} belongs to --benchmark {PERSONA_JUDGE}; leave it out.")


def persona_options(ctx: typer.Context) -> dict[str, Any]:
    """The arguments of `judge_personas` that the command line gives; its defaults are not those of `judge`.

    Raises `RecipeError` for an option that the persona judge has no use for.
    """
    given = _given(ctx)
    foreign = [flag for name, (flag, _) in given.items() if name not in PERSONA_TAKES]
    if foreign:
        hint = "; --samples says how many items" if "--limit" in foreign else ""
        raise RecipeError(f"{foreign[0]} says nothing to --benchmark {PERSONA_JUDGE}; leave it out{hint}.")
    options = {name: value for name, (_, value) in given.items() if name not in {"benchmark", "config", "price"}}
    if "config" in given:
        options["configs"] = given["config"][1]
    if "price" in given:
        options["price"] = price_of(given["price"][1])
    return options


def price_of(price: str | None) -> Price | None:
    """The price that --price says. Raises `RecipeError`."""
    if price is None:
        return None
    try:
        dollars = [float(part) for part in price.split("/")]
    except ValueError:
        dollars = []
    if len(dollars) != 2 or not all(0 <= amount < math.inf for amount in dollars):
        raise RecipeError(f"--price {price!r} is not of the form IN/OUT, such as 0.25/2.")
    return Price(*dollars)
