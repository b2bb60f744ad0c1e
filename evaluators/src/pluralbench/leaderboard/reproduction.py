"""Recompute a run with the functions that wrote it: from its items alone, or from its data, scores and replies.

No model is scored or called. Scores come from the run's items, replies from its recorded calls.
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

from pluralbench.data.persona_items import SampledItems
from pluralbench.data.persona_prompts import persona_digest
from pluralbench.errors import DataError
from pluralbench.evaluation.judge import result_of_verdicts
from pluralbench.evaluation.judged_items import JudgeVerdicts, judge_items, questions_of
from pluralbench.evaluation.pairwise import compared_pairs
from pluralbench.evaluation.personas import (
    judge_persona_items,
    result_of_personas,
)
from pluralbench.evaluation.reloading import OtherPrompts, RunData, check_prompts
from pluralbench.evaluation.score import result_of_scores, scored_items
from pluralbench.evaluation.verdicts import judge_prompts_digest, judges_of, usage_of
from pluralbench.results.evaluations import (
    EvaluationResult,
    EvaluationRunConfig,
    JudgeRunConfig,
    PersonaJudgeRunConfig,
    ScoreResult,
)
from pluralbench.results.item_rows import check_items
from pluralbench.results.kinds import Texts, numbers_of_run
from pluralbench.results.record import CostRecord
from pluralbench.results.run_files import ITEMS_FILE, LEDGER_FILE
from pluralbench.results.runs import Run


class Reproduced(NamedTuple):
    """A run recomputed from its data.

    Attributes:
        items: The frame of items.
        metrics: The frame of metrics.
        result: The result, without shards.
        unused: Number of recorded calls that no verdict needs.
        replies: The frame of replies that vote. None: one reply decides.
    """

    items: pl.DataFrame
    metrics: pl.DataFrame
    result: EvaluationResult
    unused: int = 0
    replies: pl.DataFrame | None = None


def recompute_metrics(run: Run[Any, Any]) -> pl.DataFrame:
    """Recompute the metrics of a run of any command from its own frames; those of texts are missing.

    Raises a `UserError` if the frames do not give metrics.
    """
    return numbers_of_run(run.config, run.result, run.frame)


def reproduce_run(run: Run, data: RunData) -> Reproduced:
    """Recompute a run from its data.

    Raises:
        CallsError: The ledger lacks a call.
        DataError: The data does not give the items or the prompts; `OtherPrompts` if these cannot be reproduced here.
    """
    config, cost = run.config, run.result.cost
    if isinstance(run.result, ScoreResult):
        compares = "verdict" in run.items.columns
        scored = (recorded_probabilities if compares else recorded_scores)(run.items, run.result, data.items)
        decisions, rows = scored_items(data.loaded.benchmark, data.items, scored, compares=compares)
        rows = check_items(rows, config)
        seconds = None if cost is None else CostRecord(seconds=cost.seconds)
        result = result_of_scores(run.result.model, scored, decisions, run.result.items_resumed, seconds)
        metrics = numbers_of_run(config, result, {"items": rows} | data.frames(), Texts(data.loaded.items.frame))
        return Reproduced(rows, metrics, result)
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        ledger.add_from(run.path / LEDGER_FILE)
        verdicts = judge_from_ledger(config, data, ledger, Replay())
        usage, unused, calls = usage_of(ledger), len(ledger) - len(ledger.used), ledger.frame()
    rows, clock = check_items(verdicts.frame, config), 0.0 if cost is None else cost.seconds
    if isinstance(config, PersonaJudgeRunConfig) and isinstance(data.source, SampledItems):
        metrics = numbers_of_run(config, None, {"items": verdicts.frame}, Texts(data.items))
        return Reproduced(rows, metrics, result_of_personas(config, data.source, verdicts.frame, usage, clock), unused)
    assert isinstance(config, JudgeRunConfig)  # noqa: S101 - the only other judge
    metrics = numbers_of_run(config, None, verdicts.frames | data.frames(), Texts(data.loaded.items.frame, calls))
    again = result_of_verdicts(config, verdicts, usage, clock)
    return Reproduced(rows, metrics, again, unused, verdicts.replies)


def judge_from_ledger(
    config: EvaluationRunConfig,
    data: RunData,
    ledger: Ledger,
    backend: Backend | None,
    *,
    places: Sequence[int] | None = None,
    connection: ConnectionConfig | None = None,
) -> JudgeVerdicts:
    """Judge the items of a run with replies from a backend.

    Args:
        config: Configuration of a judge's run.
        data: Data of the run.
        ledger: Ledger with the recorded calls.
        backend: Backend that answers; `Replay` answers from the ledger only. None: the endpoint.
        places: Positions of the items to judge. Default: all.
        connection: Endpoint of the judge. Default: the one that the run records.

    Returns:
        The verdicts, with rows as in the run's items.

    Raises:
        CallsError: The ledger lacks a call, or the endpoint fails.
        DataError: The data does not give the prompts; `OtherPrompts` if these cannot be reproduced here.
    """
    assert isinstance(config, JudgeRunConfig | PersonaJudgeRunConfig)  # noqa: S101 - only a judge has calls
    current = persona_digest() if isinstance(config, PersonaJudgeRunConfig) else judge_prompts_digest(config.judging)
    if config.prompts_digest != current:
        raise OtherPrompts("The judge's prompts differ from those of this version of pluralbench.")
    judges = judges_of(config, ledger, connection, backend)
    if isinstance(config, PersonaJudgeRunConfig):
        selected = [places is None or place in places for place in range(data.items.height)]
        rows = judge_persona_items(judges[0], config.judging, data.items, selected)
        return JudgeVerdicts(rows, rows["reason"].drop_nulls().to_list(), {})
    loaded, judging = check_prompts(config, data.loaded), config.judging
    loaded = loaded if places is None else loaded._replace(frame=loaded.frame[list(places)])
    return judge_items(judges, loaded, questions_of(loaded, judging), judging, config.seed)


def recorded_scores(rows: pl.DataFrame, recorded: ScoreResult, items: pl.DataFrame) -> Scored:
    """Return the scores in a run's items, in the order of its data, with what only the model knows as recorded.

    Args:
        rows: The run's items.
        recorded: The run's result.
        items: The items of its data.

    Raises:
        DataError: A response or a score is missing.
    """
    rows_of, scored = _rows_by_item(rows), _without_scores(recorded)
    ranked = "response" in rows.columns
    for place, (config, item, names) in enumerate(items.select("config", "id", "response_ids").iter_rows()):
        own = rows_of[config, item]
        if ranked:
            values = {row["response"]: (row["score"], row["tokens"]) for row in own}
        else:
            values = {side: (row[f"score_{side}"], row[f"tokens_{side}"]) for row in own for side in names}
        if len(own) != (len(names) if ranked else 1) or values.keys() != {*names}:
            raise DataError(f"{ITEMS_FILE} does not have the responses of id {item} once each.")
        dropped = own[0]["reason"]
        if dropped is not None:
            scored.dropped[place] = dropped
        scores, tokens = zip(*(values[name] for name in names), strict=True)
        scored.scores.append([] if dropped is not None else [math.nan if value is None else value for value in scores])
        scored.tokens.append([] if None in tokens else list(tokens))
        scored.tokens_cut.append(own[0]["tokens_cut"] or 0)
    # Not every model gives a reason, but none gives more than one for a score.
    most = sum(not math.isfinite(score) for scores in scored.scores for score in scores)
    scored.reasons = [*islice(Counter(recorded.invalid_reasons).elements(), most)]
    return scored


def recorded_probabilities(rows: pl.DataFrame, recorded: ScoreResult, items: pl.DataFrame) -> Scored:
    """Return the probabilities in a run's items as `compare_items` returns them, with what else is recorded.

    Args:
        rows: The run's items.
        recorded: The run's result.
        items: The items of its data.

    Raises:
        DataError: If a pair is missing.
    """
    rows_of, scored = _rows_by_item(rows), _without_scores(recorded)
    keys = items.select("config", "id", "response_ids").iter_rows()
    for place, ((config, item, names), pairs) in enumerate(zip(keys, compared_pairs(items), strict=True)):
        by_pair = {(row["chosen"], row["rejected"]): row for row in rows_of[config, item]}
        wanted = [(names[better], names[worse]) for better, worse in pairs] or [(None, None)]
        if len(rows_of[config, item]) != len(wanted) or by_pair.keys() != {*wanted}:
            raise DataError(f"{ITEMS_FILE} does not have the pairs of id {item} once each.")
        own = [by_pair[pair] for pair in wanted]
        scored.tokens_cut.append(own[0]["tokens_cut"] or 0)
        scored.scores.append([])
        if own[0]["reason"] is not None:
            scored.dropped[place] = own[0]["reason"]
        elif pairs:
            values = [row[f"probability_{side}_first"] for row in own for side in ("chosen", "rejected")]
            scored.scores[-1] = [math.nan if value is None else value for value in values]
    return scored


def _rows_by_item(rows: pl.DataFrame) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The rows of a run's items by config and id."""
    rows_of: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.iter_rows(named=True):
        rows_of[row["config"], row["id"]].append(row)
    return rows_of


def _without_scores(recorded: ScoreResult) -> Scored:
    """What a run records of its model's computation, besides scores."""
    return Scored(
        [],
        work=recorded.work,
        tolerance=recorded.tolerance,
        served=recorded.served,
        rendered_identically=recorded.items_rendered_identically,
        inputs_with_two_bos=recorded.inputs_with_two_bos,
        inputs_without_bos=recorded.inputs_without_bos,
        inputs_ending_in_padding=recorded.inputs_ending_in_padding,
    )
