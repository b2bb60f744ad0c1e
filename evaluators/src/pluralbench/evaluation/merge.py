"""`merge`: join the shards of a run into the run that one process would have made.

Rows are put in the order of the data, and metrics are computed from them as in one run, so they are the same to the
bit. Counts are added up; a call that two shards made counts once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pluralbench_calls import read_ledger, working_ledger
from pluralbench_calls.records import NOT_ANSWERED
from pluralbench_rewards import ModelRecord, Work, sum_work
from pluralbench_runs import FrozenModel, Output, describe_difference
from pluralbench_runs.options import Flag

from pluralbench.arguments import Runs
from pluralbench.config.fields import PLACE
from pluralbench.data.clusters import Shard, parse_shard
from pluralbench.data.texts import first_ids
from pluralbench.errors import RunError
from pluralbench.evaluation.loading import run_directory
from pluralbench.evaluation.verdicts import usage_of
from pluralbench.results.evaluations import (
    EvaluationResult,
    EvaluationRunConfig,
    JudgeResult,
    PersonaJudgeResult,
)
from pluralbench.results.examples import reload_unchanged
from pluralbench.results.kinds import RUN_KINDS, Texts, numbers_of_run
from pluralbench.results.record import ShardRecord, UsageRecord
from pluralbench.results.run_files import LEDGER_FILE, UNFINISHED, write_run
from pluralbench.results.runs import Run, load_run

KEY = ["config", "id"]
MAXIMUM_FIELDS = {"tolerance", "largest_difference", "servers"}
"""Result fields of which the largest value counts: tolerances, and servers, which shards may have shared."""

COMMON_FIELDS = {"against", "price"}
"""Result fields that are kept only if all shards have the same value."""


def merge(
    runs: Runs,
    *,
    data: Annotated[str | None, Flag(metavar=PLACE)] = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run:
    """Join the shards of `score`, `judge` or `judge-personas` into one run.

    Items and metrics equal those of a run without shards, to the bit on equal devices.

    Args:
        runs: Directories of all shards of a run, in any order.
        data: Current location of the run's data, if it has moved.
        out: Run directory. Default: the name of the shards without the shard number.
        fresh: Start over, and replace existing output.

    Returns:
        The joined run, as `load_run` reads it.

    Raises:
        RunError: If a shard is missing or there twice, a run is not a shard, or shards differ in settings or model.
        DataError: If the data is not what the shards read.

    Examples:
        pluralbench merge runs/mine-shard*
        pluralbench merge runs/mine-shard1of2 runs/mine-shard2of2 --out runs/whole
    """
    shards = _load_shards([Path(run) for run in runs])
    config, model = _without_shard(shards[0]), _model(shards)
    target = Path(out or _default_folder(shards))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            _join(output, config, shards, model, data)
    return load_run(target, EvaluationRunConfig)


def _load_shards(paths: Sequence[Path]) -> list[Run]:
    """Load all shards of one run, sorted by their numbers. Raises `RunError` unless each is there once."""
    # A shell pattern such as `runs/a-shard*` also matches the working directories of unfinished runs.
    runs = [
        load_run(path, EvaluationRunConfig, part=True) for path in dict.fromkeys(paths) if path.suffix != UNFINISHED
    ]
    if not runs:
        raise RunError("There is no finished shard to join; pass the directories of the shards.")
    first = runs[0]
    by_shard: dict[Shard, Run] = {}
    for run in runs:
        if run.config.shard is None:
            raise RunError(f"{run.path} is a complete run and not a shard; leave it out.")
        if run.verb != first.verb:
            raise RunError(f"{first.path} and {run.path} are not shards of one run: `{first.verb}` and `{run.verb}`.")
        if difference := describe_difference(_without_shard(run), _without_shard(first)):
            raise RunError(f"{first.path} and {run.path} are not shards of one run: settings differ ({difference}).")
        shard = _shard(run)
        if shard.total != _shard(first).total:
            raise RunError(
                f"{first.path} is shard {_shard(first)} and {run.path} is shard {shard}; pass shards of one split."
            )
        if shard in by_shard:
            raise RunError(f"{by_shard[shard].path} and {run.path} are both shard {shard}; pass one of them.")
        by_shard[shard] = run
    total = _shard(first).total
    missing = [str(shard) for shard in (Shard(number + 1, total) for number in range(total)) if shard not in by_shard]
    if missing:
        raise RunError(
            f"{len(missing):,} of {total:,} shards {'is' if len(missing) == 1 else 'are'} missing "
            f"({first_ids(missing)}); run or resume them, then pass all {total:,}."
        )
    return [by_shard[shard] for shard in sorted(by_shard)]


def _shard(run: Run) -> Shard:
    return parse_shard(str(run.config.shard))


def _without_shard(run: Run) -> EvaluationRunConfig:
    """Return the configuration of the joined run."""
    return run.config.model_copy(update={"data": run.config.data.model_copy(update={"shard": None})})


def _model(shards: Sequence[Run]) -> ModelRecord:
    """Return the record of the model that scored all shards, with the devices of all. Raises `RunError`."""
    loaded = [run for run in shards if run.items.height] or [shards[0]]  # an empty shard loads no model
    first = loaded[0].result.model
    for run in loaded[1:]:
        for name, value in first:
            if name != "device" and getattr(run.result.model, name) != value:
                raise RunError(
                    f"{loaded[0].path} and {run.path} have different models ({name.replace('_', ' ')} {value} and "
                    f"{getattr(run.result.model, name)}); rerun the shards of one of them."
                )
    devices = sorted({run.result.model.device for run in loaded if run.result.model.device})
    return first.model_copy(update={"device": ", ".join(devices) or None})


def _default_folder(shards: Sequence[Run]) -> Path:
    """Return the shards' common name without the shard numbers. Raises `RunError` if they have none."""
    stems = {run.path.parent / run.path.name.removesuffix(_shard(run).suffix) for run in shards}
    stem = stems.pop()
    if stems or any(run.path == stem for run in shards):
        raise RunError("The shards' directories have no common name for the joined run; choose one with `out=...`.")
    return stem


def _join(
    output: Output, config: EvaluationRunConfig, shards: Sequence[Run], model: ModelRecord, data: str | None
) -> None:
    sample = next((run for run in shards if run.items.height), shards[0])
    items = config.items_of(reload_unchanged(sample, data))
    frames = {"items": _in_order([run.items for run in shards], items)}
    for name in dict.fromkeys(name for run in shards for name in run.frames_of_items):
        frames[name] = _sorted([run.frame(name) for run in shards if run.items.height], items)
    result = merge_results([run.result for run in shards])
    records = [
        ShardRecord(
            shard=str(run.config.shard),
            items=run.items.select(KEY).n_unique(),
            device=run.result.model.device,
            cost=run.result.cost,
            provenance=run.provenance,
        )
        for run in shards
    ]
    changes: dict[str, Any] = {"model": model, "shards": tuple(records)}
    changes |= RUN_KINDS[config.verb].derive(config, result, frames.__getitem__)
    calls = None
    if (sample.path / LEDGER_FILE).exists():
        calls, usage = _ledger(output, shards)
        changes |= usage.model_dump()
    metrics = numbers_of_run(config, result, frames, Texts(items, calls))
    write_run(output, config, result.model_copy(update=changes), metrics, frames)


def _in_order(parts: Sequence[pl.DataFrame], items: pl.DataFrame) -> pl.DataFrame:
    """Put the rows of all shards in the order of the items. Raises `RunError` if they have other items."""
    keys = pl.concat([part.select(KEY).unique().cast(pl.String) for part in parts])
    other = (
        pl.concat([keys, items.select(KEY)]).group_by(KEY, maintain_order=True).len().filter(pl.col("len") != 2)["id"]
    )
    if len(other):
        raise RunError(
            f"The shards do not have each item of the data once (ids {first_ids(other.to_list())}); their files were "
            "changed, so rerun them."
        )
    return _sorted(parts, items)


def _sorted(parts: Sequence[pl.DataFrame], items: pl.DataFrame) -> pl.DataFrame:
    # A column without any value in a shard has no type there.
    rows = pl.concat(parts, how="vertical_relaxed")
    places = items.select(KEY).with_row_index("place")
    return rows.join(places, on=KEY, how="left", maintain_order="left").sort("place", maintain_order=True).drop("place")


def _ledger(output: Output, shards: Sequence[Run]) -> tuple[pl.DataFrame, UsageRecord]:
    """Write the calls of all shards to one ledger; return and count them.

    Raises `RunError` if two shards have different answers to the same call.
    """
    frames = [read_ledger(run.path / LEDGER_FILE) for run in shards]
    answered = [frame.filter(pl.col("finish_reason") != NOT_ANSWERED) for frame in frames]
    answers = pl.concat([frame.select("key", "label", "outcome", "text") for frame in answered])
    counts = answers.group_by("key", maintain_order=True).agg(
        pl.col("label").first(), answers=pl.struct("outcome", "text").n_unique()
    )
    conflicts = counts.filter(pl.col("answers") > 1)["label"].to_list()
    if conflicts:
        raise RunError(
            f"The shards have different answers to {len(conflicts):,} identical calls, such as {conflicts[0]}; run the "
            "benchmark without shards."
        )
    with working_ledger(output.work / "ledger.sqlite") as ledger:
        for run in shards:
            ledger.add_from(run.path / LEDGER_FILE)
        ledger.export(output.work / LEDGER_FILE)
        return ledger.frame(), usage_of(ledger)


def merge_results(results: Sequence[EvaluationResult]) -> EvaluationResult:
    """Merge the results of all shards: counts are added up, and fields that follow from the settings are kept."""
    same = {"model", "shards", *(PersonaJudgeResult.model_fields.keys() - JudgeResult.model_fields.keys())}
    return results[0].model_copy(update=_by_field(results, set(type(results[0]).model_fields) - same))


def _by_field(results: Sequence[Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: _merge_values(name, [getattr(result, name) for result in results]) for name in names}


def _merge_values(name: str, fields: Sequence[Any]) -> Any:
    values = [value for value in fields if value is not None]
    if name in COMMON_FIELDS:
        return fields[0] if all(value == fields[0] for value in fields) else None
    if not values or name in MAXIMUM_FIELDS:
        return max(values, default=None)
    first, result = values[0], values[0]
    if isinstance(first, Mapping):
        counts: Counter[str] = Counter()
        for value in values:
            counts.update(value)  # keeps counts of 0
        result = dict(sorted(counts.items()))
    elif isinstance(first, list | tuple):
        result = type(first)(sorted({*chain(*values)}))
    elif isinstance(first, FrozenModel):
        result = first.model_copy(update=_by_field(values, type(first).model_fields))
    elif isinstance(first, Work):
        result = sum_work(values)
    elif isinstance(first, int | float):
        result = sum(values)
    return result
