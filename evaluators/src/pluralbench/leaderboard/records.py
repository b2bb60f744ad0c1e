"""Records of `run.json` recomputed: data, prompts and a judge's counts, each compared as a whole."""

from collections.abc import Iterator

from pluralbench_runs import FrozenModel

from pluralbench.data.items import Items
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import benchmark_record
from pluralbench.evaluation.score import count_within_tolerance
from pluralbench.leaderboard.findings import Finding, error_finding, warning_finding
from pluralbench.leaderboard.reproduction import Reproduced, RunData, check_prompts
from pluralbench.results.decisions import decisions_of
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, RUN_FILE, Downstream, Run

OF_THE_PLACE = ("location", "revision", "license", "reference", "ignored_columns")
"""Fields of a data record that a copy of the data elsewhere need not share."""


def check_data_record(run: Run | Downstream, source: RunData, *, moved: bool) -> Iterator[Finding]:
    """Check that the data record is that of the data.

    Args:
        run: The run.
        source: Its data.
        moved: The data was read from another location than the run's.
    """
    data, read = run.config.data, source.read.source
    again = data.model_validate(
        data.model_dump()
        | {name: value.model_dump() if isinstance(value, FrozenModel) else value for name, value in read.items()}
    )
    for name in read:
        if not (moved and name in OF_THE_PLACE) and getattr(again, name) != getattr(data, name):
            yield error_finding("data", f"{RUN_FILE} records another `{name}` of the data than {source.place} has.")
    if isinstance(source.read, Items) and source.read.strata != run.config.benchmark.description.strata:
        yield error_finding("data", f"{RUN_FILE} records other strata of the drawn items than {source.place}.")


def check_benchmark_record(run: Run | Downstream) -> Iterator[Finding]:
    """Check that title and rule of the benchmark are those of its description and of the data's location."""
    benchmark, data = run.config.benchmark, run.config.data
    again = benchmark_record(benchmark.name, benchmark.description, data.location, data.revision)
    title, plain = benchmark.title, benchmark.description.title
    # The name of a file elsewhere may be that of a link, so only its place is checked.
    in_brackets = data.revision is None and again.title != plain and title.startswith(f"{plain} (")
    if title != again.title and not (in_brackets and title.endswith(")")):
        yield error_finding("settings", f"{RUN_FILE} records the title {title}, but its data gives {again.title}.")
    if benchmark.rule != again.rule:
        yield error_finding(
            "settings", f"{RUN_FILE} records the rule {benchmark.rule}, but its benchmark has {again.rule}."
        )


def check_score_counts(run: Run) -> Iterator[Finding]:
    """Check the counts of `score` that follow from the items."""
    scored, items = run.scored, run.items
    if scored is None:
        return
    counts = {
        f"items_{name}": items.filter(dropped).select("config", "id").n_unique()
        for name, dropped in (("truncated", items["truncated"]), ("dropped", items["reason"].is_not_null()))
    }
    within = count_within_tolerance(decisions_of(items), scored.tolerance)
    for name, count in (*counts.items(), ("decisions_within_tolerance", within)):
        recorded = getattr(scored, name)
        if recorded != count:
            yield error_finding(
                "record",
                f"{RUN_FILE} records {_number(recorded)} {name.replace('_', ' ')}, but {ITEMS_FILE} has "
                f"{_number(count)}.",
            )


def _number(count: int | None) -> str:
    return "no" if count is None else f"{count:,}"


def check_calls(run: Run, again: Reproduced) -> Iterator[Finding]:
    """Check a judge's record and counts against those that its calls give, and that each call has a verdict."""
    if again.result is None:
        return
    # A call that two shards made was paid twice.
    compared = type(again.result).model_fields.keys() - {"shards", *(("cost",) if run.result.shards else ())}
    for name in sorted(compared):
        if getattr(run.result, name) != getattr(again.result, name):
            yield error_finding("record", f"{RUN_FILE} records another `{name}` than follows from its calls.")
    if again.unused:
        yield error_finding("replies", f"{LEDGER_FILE} has {again.unused:,} calls that no verdict needs.")


def check_score_prompts(run: Run, source: RunData) -> Iterator[Finding]:
    """Check that the data has the user context in the prompts of `score`; what the model read, only scoring shows."""
    if run.scored is None:
        return
    try:
        loaded = check_prompts(run.config, source)
        if loaded.prompt.profile != "none":
            loaded.groups()
    except DataError as error:
        yield warning_finding("prompts", f"The user context in its prompts was not checked. {error}")
