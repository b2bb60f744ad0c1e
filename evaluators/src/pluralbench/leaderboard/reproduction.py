"""Recompute a run with the functions that wrote it: from its data, its scores and its recorded replies.

No model is scored or called. Scores come from the run's items, replies from its recorded calls.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from pluralbench_calls import Backend, Ledger, Replay
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_rewards import Scored
from pluralbench_runs import UserError

from pluralbench.errors import DataError
from pluralbench.evaluation.judged_items import JudgeVerdicts, judge_items, questions_of
from pluralbench.evaluation.loading import LoadedPersonas
from pluralbench.evaluation.pairwise import compared_pairs
from pluralbench.evaluation.personas import judge_persona_items
from pluralbench.evaluation.reloading import OtherPrompts, RunData, check_prompts
from pluralbench.evaluation.scores import scored_items
from pluralbench.evaluation.verdicts import judges_of
from pluralbench.leaderboard.comparisons import Findings, compare_metrics, compare_records, compare_rows
from pluralbench.results.checks import Finding
from pluralbench.results.item_rows import check_items
from pluralbench.results.kinds import Texts, numbers_of_run
from pluralbench.results.run_files import ITEMS_FILE, LEDGER_FILE
from pluralbench.results.runs import Run


def compare_with_data(run: Run, data: RunData) -> Findings:
    """Compare the records, frames and metrics of a run with those that its data gives.

    Raises:
        OtherPrompts: The run's prompts cannot be reproduced here.
    """
    if differ := [*compare_records(run, data)]:
        yield from differ
        return
    try:
        frames, metrics = _reproduced(run, data)
    except OtherPrompts:
        raise
    except UserError as error:
        yield Finding("error", f"It cannot be recomputed from its data. {error}")
        return
    for name, frame in frames.items():
        yield from compare_rows(run, name, frame, data.items.location)
    yield from compare_metrics(run.metrics, metrics, ITEMS_FILE)


def _reproduced(run: Run, data: RunData) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """Recompute the frames and the metrics of a run from its data."""
    config, frames, calls = run.config, data.frames(), None
    if run.scored is not None:
        compares = "verdict" in run.items.columns
        scored = (recorded_probabilities if compares else recorded_scores)(run.items, data.frame)
        _, frames["items"] = scored_items(config.benchmark.description, data.frame, scored, compares=compares)
    else:
        with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
            ledger.add_from(run.path / LEDGER_FILE)
            frames |= judge_from_ledger(config, data, ledger, Replay()).frames
            calls = ledger.frame()
    frames["items"] = check_items(frames["items"], config)
    return frames, numbers_of_run(config, run.result, frames, Texts(data.frame, calls))


def judge_from_ledger(
    config: Any,
    data: RunData,
    ledger: Ledger,
    backend: Backend | None,
    *,
    places: Sequence[int] | None = None,
    connection: ConnectionConfig | None = None,
) -> JudgeVerdicts:
    """Judge the items of a run at these places, or all, with replies from a backend.

    `Replay` answers from the ledger only; without a backend the endpoint of `connection` does, or the recorded one.

    Raises:
        CallsError: The ledger lacks a call, or the endpoint fails.
        DataError: The data does not give the prompts; `OtherPrompts` if these cannot be reproduced here.
    """
    if config.prompts_digest != config.digest_of_prompts(config.judging):
        raise OtherPrompts("The judge's prompts differ from those of this version of pluralbench.")
    judges = judges_of(config, ledger, connection, backend)
    chosen = slice(None) if places is None else list(places)
    if isinstance(data, LoadedPersonas):
        return judge_persona_items(judges[0], config.judging, data._replace(frame=data.frame[chosen]))
    loaded = check_prompts(config, data)
    loaded = loaded._replace(frame=loaded.frame[chosen])
    return judge_items(judges, loaded, questions_of(loaded, config.judging), config.judging, config.seed)


def recorded_scores(rows: pl.DataFrame, items: pl.DataFrame) -> Scored:
    """Return the scores in a run's items, in the order of the items of its data.

    Raises:
        DataError: A response is missing.
    """
    scored, ranked = Scored([]), "response" in rows.columns
    row_of = _rows_by(rows, "response") if ranked else _rows_by(rows)
    for place, (config, item, names) in enumerate(items.select("config", "id", "response_ids").iter_rows()):
        own = [
            (_row(row_of, config, item, *([name] if ranked else ())), "" if ranked else f"_{name}") for name in names
        ]
        first, _ = own[0]
        if first["reason"] is not None:
            scored.dropped[place] = first["reason"]
        tokens = [row[f"tokens{end}"] for row, end in own]
        scored.scores.append([] if place in scored.dropped else [_or_nan(row[f"score{end}"]) for row, end in own])
        scored.tokens.append([] if None in tokens else tokens)
        scored.tokens_cut.append(first["tokens_cut"] or 0)
    return scored


def recorded_probabilities(rows: pl.DataFrame, items: pl.DataFrame) -> Scored:
    """Return the probabilities in a run's items as `compare_items` returns them; see `recorded_scores`."""
    row_of, scored = _rows_by(rows, "chosen", "rejected"), Scored([])
    keys = items.select("config", "id", "response_ids").iter_rows()
    for place, ((config, item, names), pairs) in enumerate(zip(keys, compared_pairs(items), strict=True)):
        wanted = [(names[better], names[worse]) for better, worse in pairs] or [(None, None)]
        own = [_row(row_of, config, item, *pair) for pair in wanted]
        scored.tokens_cut.append(own[0]["tokens_cut"] or 0)
        scored.scores.append([])
        if own[0]["reason"] is not None:
            scored.dropped[place] = own[0]["reason"]
        elif pairs:
            sides = ("probability_chosen_first", "probability_rejected_first")
            scored.scores[-1] = [_or_nan(row[side]) for row in own for side in sides]
    return scored


def _rows_by(rows: pl.DataFrame, *names: str) -> dict[tuple[str | None, ...], dict[str, Any]]:
    """The rows of a run's items by config, id and these columns; a row that is there twice counts once."""
    return {tuple(row[name] for name in ("config", "id", *names)): row for row in rows.iter_rows(named=True)}


def _row(row_of: dict[tuple[str | None, ...], dict[str, Any]], *key: str | None) -> dict[str, Any]:
    if key not in row_of:
        raise DataError(f"{ITEMS_FILE} does not have all responses of id {key[1]}.")
    return row_of[key]


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
