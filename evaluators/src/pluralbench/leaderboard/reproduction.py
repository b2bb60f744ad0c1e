"""Reproduce a run from its data, its recorded scores and its recorded replies, with the functions that wrote it.

No model is scored or called: scores come from the run's items, replies from its ledger. Rows, clusters, subsets, ranks,
true answers, outcomes, calls, metrics and baselines then follow from the data, and must equal those in the run's files.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Backend, Ledger, Replay
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_rewards import Scored
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge_prompts import prompts_digest
from pluralbench_runs import UserError, digest, plural

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.data.items import Items
from pluralbench.data.persona_items import PersonaItemSet, SampledItems
from pluralbench.data.persona_prompts import persona_digest
from pluralbench.data.personas import read_personas
from pluralbench.data.prompts import UserContext, read_plans
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError
from pluralbench.evaluation.judge import compute_judge_metrics, result_of_verdicts
from pluralbench.evaluation.judged_items import JudgeContexts, JudgeVerdicts, judge_items
from pluralbench.evaluation.loading import SELECTION, LoadedBenchmark
from pluralbench.evaluation.personas import (
    compute_persona_metrics,
    draw_run_items,
    judge_persona_items,
    make_persona_judge,
    result_of_personas,
)
from pluralbench.evaluation.score import result_of_scores
from pluralbench.evaluation.verdicts import usage_of
from pluralbench.leaderboard.findings import Finding, error_finding
from pluralbench.results.decisions import decide, score_items
from pluralbench.results.downstream import DownstreamRunConfig
from pluralbench.results.evaluations import (
    EvaluationResult,
    EvaluationRunConfig,
    JudgeResult,
    JudgeRunConfig,
    PersonaJudgeRunConfig,
)
from pluralbench.results.examples import data_location, reload_items
from pluralbench.results.record import CostRecord
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, Downstream, Run

DIFFERENT_PROMPTS = "The judge's prompts differ from those of this version of pluralbench."


class OtherPrompts(DataError):
    """Prompts of another version of pluralbench, or with a file that the run does not contain."""


class RunInputs(NamedTuple):
    """Inputs of a run that its directory does not contain.

    Attributes:
        data: Location of the data. Default: the location that the run records.
        plans: File of plans that the prompts use.
        personas: File of personas that the prompts use.
    """

    data: str | None = None
    plans: Path | None = None
    personas: Path | None = None


class RunData(NamedTuple):
    """Data of a run, read again.

    Attributes:
        place: Location of the data.
        read: All items of the data.
        loaded: Items with their user context; None for the persona judge.
        drawn: Items of the persona judge that the run contains; None for other verbs.
    """

    place: str
    read: Items | PersonaItemSet
    loaded: LoadedBenchmark | None
    drawn: SampledItems | None

    @property
    def items(self) -> pl.DataFrame:
        """The items that the run must contain, in order."""
        return self.read.frame if self.drawn is None else self.drawn.frame


DataCache = dict[str, Items | PersonaItemSet | UserError]
"""The data read last, or the error, for consecutive runs on the same data."""


def _read(run: Run | Downstream, data: str | None, cache: DataCache) -> Items | PersonaItemSet:
    """Read the items of a run's data; see `reload_items`. Raises a `UserError` if the data cannot be read."""
    selection = run.config.data.model_dump(mode="json", include={*SELECTION, "on_empty", "reference"})
    description = run.config.benchmark.description.model_dump(mode="json")
    key = digest([data_location(run, data), data, run.verb, selection, description])
    if key not in cache:
        cache.clear()
        try:
            cache[key] = reload_items(run, data)
        except UserError as error:
            cache[key] = error
    cached = cache[key]
    if isinstance(cached, UserError):
        raise cached
    return cached


def run_data(run: Run | Downstream, files: RunInputs, cache: DataCache | None = None) -> RunData:
    """Read the data of a run, with the user context of its prompts.

    Args:
        run: The run.
        files: Location of the data, and files of plans and personas.
        cache: Cache for consecutive runs on the same data.

    Raises:
        UserError: The data or a file cannot be read.
    """
    read = _read(run, files.data, {} if cache is None else cache)
    place, config = data_location(run, files.data), run.config
    if isinstance(read, PersonaItemSet) or isinstance(config, PersonaJudgeRunConfig):
        assert isinstance(read, PersonaItemSet) and isinstance(config, PersonaJudgeRunConfig)  # noqa: S101, PT018 - of one verb
        return RunData(place, read, None, draw_run_items(config, read))
    prompt = PromptConfig.model_validate(config.prompt.model_dump(include={"profile", "profile_size"}))
    selection = DataConfig.model_validate({name: getattr(config.data, name) for name in SELECTION})
    plans = read_plans(files.plans) if files.plans is not None and prompt.profile == "plan" else {}
    personas_file = files.personas if config.prompt.personas_digest is not None else None
    personas = {} if personas_file is None else read_personas(personas_file)
    context = UserContext(prompt, plans, personas, read.history)
    loaded = LoadedBenchmark(
        config.benchmark.name, config.benchmark.description, read, selection, context, None, read.frame
    )
    return RunData(place, read, loaded, None)


def check_rows(run: Run, source: RunData) -> list[Finding]:
    """Check that the run has exactly the items and responses of its data."""
    findings: list[Finding] = []
    key = ["config", "id", "digest"]
    ours, theirs = run.items.select(key).unique(maintain_order=True), source.items.select(key)
    for rows, other, problem in (
        (ours, theirs, f"{source.place} does not have the texts of {{}}."),
        (theirs, ours, f"{ITEMS_FILE} lacks {{}} that {source.place} has."),
    ):
        ids = rows.join(other, on=key, how="anti", maintain_order="left")["id"].to_list()
        if ids:
            findings.append(error_finding("data", problem.format(f"{plural(len(ids), 'item')} (ids {first_ids(ids)})")))
    if not findings and "response" in run.items.columns:
        own = run.items.group_by("config", "id").agg(pl.col("response").sort())
        both = source.items.select("config", "id", "response_ids").join(own, on=["config", "id"], how="left")
        wrong = both.filter(pl.col("response_ids").list.sort() != pl.col("response"))["id"].to_list()
        if wrong:
            which = f"{plural(len(wrong), 'item')} once each (ids {first_ids(wrong)})"
            text = f"{ITEMS_FILE} does not have the responses of {which}."
            findings.append(error_finding("data", text))
    return findings


class Reproduced(NamedTuple):
    """A run recomputed from its data.

    Attributes:
        items: The frame of items.
        metrics: The frame of metrics.
        result: The result, without shards.
        unused: Number of recorded calls that no verdict needs.
    """

    items: pl.DataFrame
    metrics: pl.DataFrame
    result: EvaluationResult
    unused: int = 0


def reproduce_run(run: Run, source: RunData) -> Reproduced:
    """Recompute a run whose rows passed `check_rows`.

    Raises:
        CallsError: The ledger lacks a call.
        DataError: The data does not give the prompts; `OtherPrompts` if these cannot be reproduced here.
    """
    if run.judged is not None:
        return _reproduce_judge(run, source)
    assert source.loaded is not None and run.scored is not None  # noqa: S101, PT018 - only the persona judge has none
    loaded = source.loaded
    scored = recorded_scores(run, loaded.frame)
    decisions = decide(loaded.frame, scored.scores, scored.tokens_cut)
    rows = score_items(loaded.benchmark, loaded.frame, scored, decisions)
    cost = None if run.result.cost is None else CostRecord(seconds=run.result.cost.seconds)
    result = result_of_scores(run.result.model, scored, decisions, run.scored.items_resumed, cost)
    return Reproduced(rows, loaded.compute_metrics(decisions, rows), result)


def _reproduce_judge(run: Run, source: RunData) -> Reproduced:
    config, seconds = run.config, 0.0 if run.result.cost is None else run.result.cost.seconds
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        ledger.add_from(run.path / LEDGER_FILE)
        verdicts = judge_from_ledger(run, source, ledger, Replay())
        usage, unused, calls = usage_of(ledger), len(ledger) - len(ledger.used), ledger.frame()
    if isinstance(config, PersonaJudgeRunConfig):
        assert source.drawn is not None  # noqa: S101 - the persona judge has them
        metrics = compute_persona_metrics(config, verdicts.frame, source.items)
        result: JudgeResult = result_of_personas(config, source.drawn, verdicts.frame, usage, seconds)
    else:
        assert source.loaded is not None and isinstance(config, JudgeRunConfig)  # noqa: S101, PT018 - the same
        metrics = compute_judge_metrics(source.loaded, verdicts.frame, calls)
        result = result_of_verdicts(config, verdicts, usage, seconds)
    return Reproduced(verdicts.frame, metrics, result, unused)


def check_prompts(config: EvaluationRunConfig | DownstreamRunConfig, source: RunData) -> LoadedBenchmark:
    """Return the items with their user context.

    Raises:
        OtherPrompts: The run's prompts differ from those that this version makes from the data.
    """
    loaded = source.loaded
    assert loaded is not None  # noqa: S101 - only the persona judge has none
    current, recorded = loaded.prompt_record(), config.prompt
    if current.wordings_digest != recorded.wordings_digest:
        raise OtherPrompts("Its prompts differ from those of this version of pluralbench.")
    if current != recorded:
        raise OtherPrompts(
            "Its prompts use a file of plans or personas, which the run does not contain; give that file "
            "(`plans=...`, `personas=...`)."
        )
    return loaded


def judge_from_ledger(
    run: Run,
    source: RunData,
    ledger: Ledger,
    backend: Backend,
    *,
    places: Sequence[int] | None = None,
    connection: ConnectionConfig | None = None,
) -> JudgeVerdicts:
    """Judge the items of a run with replies from a backend.

    Args:
        run: Run of a judge.
        source: Data of the run.
        ledger: Ledger with the recorded calls.
        backend: Backend that answers; `Replay` answers from the ledger only.
        places: Positions of the items to judge. Default: all.
        connection: Endpoint of the judge. Default: the one that the run records.

    Returns:
        The verdicts, with rows as in the run's items.

    Raises:
        CallsError: The ledger lacks a call, or the endpoint fails.
        DataError: The data does not give the prompts; `OtherPrompts` if these cannot be reproduced here.
    """
    config = run.config
    if isinstance(config, PersonaJudgeRunConfig):
        if config.prompts_digest != persona_digest():
            raise OtherPrompts(DIFFERENT_PROMPTS)
        frame, chosen = source.items, None if places is None else set(places)
        selected = [chosen is None or place in chosen for place in range(frame.height)]
        endpoint = connection or config.connection
        persona_judge = make_persona_judge(config.model, endpoint, ledger, config.judging, config.seed, backend)
        rows = judge_persona_items(persona_judge, config.judging, frame, selected)
        return JudgeVerdicts(rows, rows["reason"].drop_nulls().to_list(), {})
    assert isinstance(config, JudgeRunConfig)  # noqa: S101 - `score` has no ledger
    if config.prompts_digest != prompts_digest(listwise=config.judging.protocol == "listwise"):
        raise OtherPrompts(DIFFERENT_PROMPTS)
    loaded = check_prompts(config, source)
    if places is not None:
        loaded = loaded._replace(frame=loaded.frame[list(places)])
    judging = config.judging
    judge = Judge(
        config.model,
        connection or config.connection,
        ledger,
        judging.attempts,
        judging.chosen_format,
        judging.criterion,
        judging.verdict_parsing,
        backend=backend,
    )
    return judge_items(judge, loaded, JudgeContexts.for_items(loaded, judging), judging, config.seed)


def recorded_scores(run: Run, items: pl.DataFrame) -> Scored:
    """Return the scores in a run's items, in the order of its data, with what only the model knows as recorded.

    Raises `DataError` for a missing response.
    """
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in run.items.iter_rows(named=True):
        rows[row["config"], row["id"]].append(row)
    scored = _scored_without_scores(run)
    for place, (config, item, names) in enumerate(items.select("config", "id", "response_ids").iter_rows()):
        own = rows[config, item]
        first = own[0]
        if "response" in first:
            by_name = {row["response"]: (row["score"], row["tokens"]) for row in own}
            if by_name.keys() != set(names) or len(own) != len(names):
                raise DataError(f"{ITEMS_FILE} does not have the responses of id {item} once each.")
            values, tokens = zip(*(by_name[name] for name in names), strict=True)
        else:
            values, tokens = zip(*((first[f"score_{side}"], first[f"tokens_{side}"]) for side in names), strict=True)
        dropped = first["reason"]
        if dropped is not None:
            scored.dropped[place] = dropped
        scored.scores.append([] if dropped is not None else [math.nan if value is None else value for value in values])
        scored.tokens.append([] if None in tokens else list(tokens))
        scored.tokens_cut.append(first["tokens_cut"] or 0)
    if run.scored is not None:
        # Not every model gives a reason, but none gives more than one for a score.
        most = sum(not math.isfinite(score) for scores in scored.scores for score in scores)
        scored.reasons = [*islice(Counter(run.scored.invalid_reasons).elements(), most)]
    return scored


def _scored_without_scores(run: Run) -> Scored:
    recorded = run.scored
    if recorded is None:
        return Scored([])
    return Scored(
        [],
        work=recorded.work,
        tolerance=recorded.tolerance,
        served=recorded.served,
        rendered_identically=recorded.items_rendered_identically,
        inputs_with_two_bos=recorded.inputs_with_two_bos,
        inputs_without_bos=recorded.inputs_without_bos,
    )


def row_key(items: pl.DataFrame) -> list[str]:
    """Return the columns that identify a row of a run's items."""
    judged = ("chosen", "rejected") if "verdict_chosen_first" in items.columns else ()
    return [name for name in ("config", "id", "response", *judged) if name in items.columns]


def check_items_again(run: Run, again: pl.DataFrame, place: str) -> list[Finding]:
    """Check each row of the run's items against the reproduced one."""
    key = row_key(again)
    ours = run.items.with_columns(pl.col(name).cast(again.schema[name]) for name in key)
    both = again.join(ours, on=key, how="left", nulls_equal=True, suffix="_recorded", maintain_order="left")
    findings = []
    if ours.height != again.height or ours.join(again, on=key, how="anti", nulls_equal=True).height:
        findings.append(
            error_finding(
                "items", f"{ITEMS_FILE} and {place} have different rows: {ours.height:,} and {again.height:,}."
            )
        )
    for name in again.columns:
        if name in key:
            continue
        reproduced, recorded = both[name].to_list(), both[f"{name}_recorded"].to_list()
        ids = [
            item
            for item, a, b in zip(both["id"], reproduced, recorded, strict=True)
            if a != b and not (_is_nan(a) and _is_nan(b))
        ]
        if ids:
            findings.append(
                error_finding(
                    "items",
                    f"{ITEMS_FILE} has in {len(ids):,} rows another `{name}` than follows from {place} "
                    f"(ids {first_ids(ids)}).",
                )
            )
    return findings


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
