"""Records of `run.json` recomputed: data, settings, prompts and result, each compared as a whole."""

from collections.abc import Iterator

from pluralbench.data.items import Items
from pluralbench.data.persona_items import PersonaItemSet
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import benchmark_record
from pluralbench.evaluation.personas import persona_run_config
from pluralbench.leaderboard.findings import Finding, error_finding, warning_finding
from pluralbench.leaderboard.reproduction import OtherPrompts, Reproduced, RunData, check_prompts
from pluralbench.results.evaluations import PersonaJudgeRunConfig
from pluralbench.results.record import DataRecord
from pluralbench.results.runs import LEDGER_FILE, RUN_FILE, Downstream, Run

OF_THE_PLACE = ("location", "revision", "license", "reference", "ignored_columns")
"""Fields of a data record that a copy of the data elsewhere need not share."""


def check_data_record(run: Run | Downstream, source: RunData, *, moved: bool) -> Iterator[Finding]:
    """Check that the data record is that of the data.

    Args:
        run: The run.
        source: Its data.
        moved: The data was read from another location than the run's.
    """
    data, again = run.config.data, _data_record(run, source)
    for name in type(data).model_fields:
        if not (moved and name in OF_THE_PLACE) and getattr(again, name) != getattr(data, name):
            yield error_finding("data", f"{RUN_FILE} records another `{name}` of the data than {source.place} has.")
    if moved and data.revision is not None:
        yield warning_finding(
            "data",
            f"It was checked against {source.place}; that its data is {data.location} at revision "
            f"{data.revision[:12]} is only recorded.",
        )
    if isinstance(source.read, Items) and source.read.strata != run.config.benchmark.description.strata:
        yield error_finding("data", f"{RUN_FILE} records other strata of the drawn items than {source.place}.")


def _data_record(run: Run | Downstream, source: RunData) -> DataRecord:
    if source.loaded is not None:
        return source.loaded.data_record()
    return _persona_config(run, source).data


def check_persona_config(run: Run, source: RunData) -> Iterator[Finding]:
    """Check the fields of a persona judge's settings that no question shows."""
    config = run.config
    if not isinstance(config, PersonaJudgeRunConfig):
        return
    again = _persona_config(run, source)
    if config.prompts_digest != again.prompts_digest:  # of another version of pluralbench
        return
    for name in type(config).model_fields.keys() - {"benchmark", "data"}:
        if getattr(config, name) != getattr(again, name):
            yield error_finding("settings", f"{RUN_FILE} records another `{name}` than `{run.verb}` has.")


def _persona_config(run: Run | Downstream, source: RunData) -> PersonaJudgeRunConfig:
    config, read = run.config, source.read
    assert isinstance(config, PersonaJudgeRunConfig) and isinstance(read, PersonaItemSet)  # noqa: S101, PT018 - of one verb
    return persona_run_config(read, config.data, config.model, config.judging, config.seed, config.connection)


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


def check_result(run: Run, again: Reproduced) -> Iterator[Finding]:
    """Check the whole result against the one that scores or calls give, and that each call has a verdict."""
    # A call that two shards made was paid twice.
    compared = type(again.result).model_fields.keys() - {"shards", *(("cost",) if run.result.shards else ())}
    source = "scores" if run.judged is None else "calls"
    for name in sorted(compared):
        if getattr(run.result, name) != getattr(again.result, name):
            yield error_finding("record", f"{RUN_FILE} records another `{name}` than follows from its {source}.")
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
    except OtherPrompts as error:
        yield warning_finding("prompts", f"The user context in its prompts was not checked. {error}")
    except DataError as error:
        yield missing_context(error)


def missing_context(error: DataError) -> Finding:
    """Return the finding of a run whose data lacks what its settings put into the prompts."""
    return error_finding("settings", f"Its data does not have what its prompts show. {error}")
