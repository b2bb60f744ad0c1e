"""`merge`: the shards of a run, joined to what the whole run would have been.

The items' rows are put in the order of the data, and metrics are computed from them as for a whole run, so that they
are the same to the bit. What was counted is added up; calls that two shards made alike count once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import read_ledger, working_ledger
from pluralbench_rewards import ModelRecord, Work, sum_work
from pluralbench_runs import FrozenModel, Output, describe_difference

from pluralbench.data.persona_items import PersonaItemSet
from pluralbench.data.shards import Shard, parse_shard
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.judge import with_legacy
from pluralbench.evaluation.loading import run_directory
from pluralbench.evaluation.personas import compute_persona_metrics, draw_run_items, without_persona
from pluralbench.evaluation.score import count_within_tolerance
from pluralbench.metrics import measure
from pluralbench.results.decisions import decisions_of
from pluralbench.results.evaluations import (
    EvaluationResult,
    EvaluationRunConfig,
    JudgeResult,
    PersonaJudgeResult,
    PersonaJudgeRunConfig,
    ScoreResult,
)
from pluralbench.results.examples import data_location, reload_items
from pluralbench.results.finding import UNFINISHED
from pluralbench.results.record import ShardRecord
from pluralbench.results.runs import LEDGER_FILE, Run, load_run, write_run

KEY = ["config", "id"]
LARGEST = {"tolerance", "largest_difference", "servers"}
"""Measured on some of a shard; and servers that shards may have shared, so there were at least those of one."""

ALIKE = {"against", "price"}
"""What is told where all shards have the same."""


def merge(
    runs: Sequence[str | Path],
    *,
    data: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run:
    """Join the shards of a run of `score`, `judge` or `judge_personas`; returns the whole run, which lies in `out`.

    runs: the directories of all shards, in any order. data: where the data is now, if it has moved since; it is read
    again for what metrics need of its texts. out: without it the shards' own name without what tells them apart.
    fresh: replace a whole run that is there.

    Items and metrics are those of the same run made at once: to the bit where scores do not depend on what is scored
    beside them (see `Scoring.mode`). Raises `RunError` for shards of differing settings or models, a shard that is
    missing or there twice, and a run that is no shard; `DataError` for other data than the shards had.
    """
    shards = _shards([Path(run) for run in runs])
    config, model = _whole(shards[0]), _model(shards)
    target = Path(out or _folder(shards))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            _join(output, config, shards, model, data)
    return load_run(target, EvaluationRunConfig)


def _shards(paths: Sequence[Path]) -> list[Run]:
    """The shards at these paths, by their numbers: all of one run, each once. Raises `RunError`."""
    # A shell's `runs/a-shard*` has the working directories of unfinished runs among its paths.
    found = [
        load_run(path, EvaluationRunConfig, part=True) for path in dict.fromkeys(paths) if path.suffix != UNFINISHED
    ]
    if not found:
        raise RunError("There is no finished shard to join; give the directories that --shard made.")
    first = found[0]
    numbers: dict[Shard, Run] = {}
    for run in found:
        if run.config.data.shard is None:
            raise RunError(f"{run.path} is a whole run and no shard of one; leave it out.")
        differs = describe_difference(_whole(run), _whole(first)) if run.verb == first.verb else ""
        if differs or run.verb != first.verb:
            why = (
                f"settings differ ({differs})" if differs else f"the first is of {first.verb}, the second of {run.verb}"
            )
            raise RunError(f"{first.path} and {run.path} are no shards of one run: {why}.")
        shard = _shard(run)
        if shard.total != _shard(first).total:
            raise RunError(
                f"{first.path} is shard {_shard(first)} and {run.path} shard {shard}, which are shares of another "
                "size; give all shards of one number."
            )
        if shard in numbers:
            raise RunError(f"{numbers[shard].path} and {run.path} are both shard {shard}; give one of them.")
        numbers[shard] = run
    of = _shard(first).total
    missing = [str(shard) for shard in (Shard(number + 1, of) for number in range(of)) if shard not in numbers]
    if missing:
        raise RunError(
            f"Of {of:,} shards {len(missing):,} are missing ({first_ids(missing)}): run them, or go on with those that "
            "were interrupted, by their own commands, and give all."
        )
    return [numbers[shard] for shard in sorted(numbers)]


def _shard(run: Run) -> Shard:
    return parse_shard(str(run.config.data.shard))


def _whole(run: Run) -> EvaluationRunConfig:
    """What a shard was asked, without its share: what the whole run was asked."""
    return run.config.model_copy(update={"data": run.config.data.model_copy(update={"shard": None})})


def _model(shards: Sequence[Run]) -> ModelRecord:
    """The one model that scored all shards; of several devices all are named. Raises `RunError`."""
    loaded = [run for run in shards if run.items.height] or [shards[0]]  # an empty share loads no model
    first = loaded[0].result.model
    for run in loaded[1:]:
        for name, value in first:
            if name != "device" and getattr(run.result.model, name) != value:
                raise RunError(
                    f"{loaded[0].path} and {run.path} were made by different models ({name.replace('_', ' ')} "
                    f"{value}, now {getattr(run.result.model, name)}); run the shards of one of them again."
                )
    devices = sorted({run.result.model.device for run in loaded if run.result.model.device})
    return first.model_copy(update={"device": ", ".join(devices) or None})


def _folder(shards: Sequence[Run]) -> Path:
    """The shards' own name without what tells them apart. Raises `RunError` where they have no such name."""
    stems = {run.path.parent / run.path.name.removesuffix(_shard(run).suffix) for run in shards}
    stem = stems.pop()
    if stems or any(run.path == stem for run in shards):
        raise RunError("The shards have no name in common that the whole run could have; say where it goes with --out.")
    return stem


def _join(
    output: Output, config: EvaluationRunConfig, shards: Sequence[Run], model: ModelRecord, data: str | None
) -> None:
    some = next((run for run in shards if run.items.height), shards[0])
    read = reload_items(some, data, "pluralbench merge RUN... --data PLACE")
    if read.digest != config.data.digest:
        raise DataError(
            f"{data_location(some, data)} has other content than what the shards are of; give it as it was with --data."
        )
    items = read.frame
    if isinstance(config, PersonaJudgeRunConfig) and isinstance(read, PersonaItemSet):
        items = draw_run_items(config, read).frame
    frame = _in_order([run.items for run in shards], items)
    result = merge_results([run.result for run in shards])
    records = [
        ShardRecord(
            shard=str(run.config.data.shard),
            items=run.items.select(KEY).n_unique(),
            device=run.result.model.device,
            cost=run.result.cost,
            provenance=run.provenance,
        )
        for run in shards
    ]
    changes: dict[str, Any] = {"model": model, "shards": tuple(records)}
    calls = pl.DataFrame()
    if isinstance(result, JudgeResult):
        calls, prompt_tokens, completion_tokens = _ledger(output, shards)
        changes |= {"calls": calls.height, "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    if isinstance(config, PersonaJudgeRunConfig):
        metrics = compute_persona_metrics(config, frame, items, output.work)
        changes["without_persona"] = without_persona(frame, config.judging.variables)
    else:
        metrics = with_legacy(measure(config.benchmark.description, decisions_of(frame), items), frame, calls)
    if isinstance(result, ScoreResult) and (result.work or result.served):
        changes["decisions_within_tolerance"] = count_within_tolerance(decisions_of(frame), result.tolerance)
    write_run(output, config, result.model_copy(update=changes), metrics, {"items": frame})


def _in_order(parts: Sequence[pl.DataFrame], items: pl.DataFrame) -> pl.DataFrame:
    """The rows of all shards in the order of the items. Raises `RunError` where they are of other items."""
    every = pl.concat([part.select(KEY).unique().cast(pl.String) for part in parts])
    twice, lacking = every.filter(every.is_duplicated()), items.select(KEY).join(every, on=KEY, how="anti")
    beyond = every.join(items, on=KEY, how="anti")
    for wrong, said in ((twice, "have {} twice"), (lacking, "lack {}"), (beyond, "have {} that the data has not")):
        ids = wrong["id"].unique(maintain_order=True).to_list()
        if ids:
            raise RunError(
                f"The shards {said.format(f'{len(ids):,} items (ids {first_ids(ids)})')}, so their files are no longer "
                "those that were written; run them again."
            )
    # A column of which a shard has no value has no type there.
    rows = pl.concat(parts, how="vertical_relaxed")
    places = items.select(KEY).with_row_index("place")
    return rows.join(places, on=KEY, how="left", maintain_order="left").sort("place", maintain_order=True).drop("place")


def _ledger(output: Output, shards: Sequence[Run]) -> tuple[pl.DataFrame, int, int]:
    """The calls of all shards with their tokens, written among the files of the run.

    Raises `RunError` for answers that contradict.
    """
    frames = [read_ledger(run.path / LEDGER_FILE) for run in shards]
    answers = pl.concat([frame.select("key", "label", "outcome", "text") for frame in frames])
    said = answers.group_by("key", maintain_order=True).agg(
        pl.col("label").first(), answers=pl.struct("outcome", "text").n_unique()
    )
    several = said.filter(pl.col("answers") > 1)["label"].to_list()
    if several:
        raise RunError(
            f"Two shards asked the same and were answered differently ({len(several):,} calls, such as {several[0]}), "
            "so one ledger cannot hold both; run the whole without --shard."
        )
    with working_ledger(output.work / "ledger.sqlite") as ledger:
        for run in shards:
            ledger.add_from(run.path / LEDGER_FILE)
        ledger.export(output.work / LEDGER_FILE)
        return ledger.frame(), *ledger.usage()


def merge_results(results: Sequence[EvaluationResult]) -> EvaluationResult:
    """What came of all shards: what they counted, added up. What follows from the settings is of the first."""
    same = {"model", "shards", *(PersonaJudgeResult.model_fields.keys() - JudgeResult.model_fields.keys())}
    return results[0].model_copy(update=_by_field(results, set(type(results[0]).model_fields) - same))


def _by_field(given: Sequence[Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: _joined(name, [getattr(one, name) for one in given]) for name in names}


def _joined(name: str, given: Sequence[Any]) -> Any:
    values = [value for value in given if value is not None]
    if name in ALIKE:
        return given[0] if all(value == given[0] for value in given) else None
    if not values or name in LARGEST:
        return max(values, default=None)
    first, found = values[0], values[0]
    if isinstance(first, Mapping):
        counts: Counter[str] = Counter()
        for value in values:
            counts.update(value)  # which keeps what is 0
        found = dict(sorted(counts.items()))
    elif isinstance(first, list | tuple):
        found = type(first)(sorted({*chain(*values)}))
    elif isinstance(first, FrozenModel):
        found = first.model_copy(update=_by_field(values, type(first).model_fields))
    elif isinstance(first, Work):
        found = sum_work(values)
    elif isinstance(first, int | float):
        found = sum(values)
    return found
