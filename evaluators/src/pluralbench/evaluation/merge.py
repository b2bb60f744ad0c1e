"""`merge`: the shards of a run, joined to what the whole run would have been.

The items' rows are put in the order of the data, and metrics are computed from them as for a whole run, so that they
are the same to the bit. What was counted is added up; calls that two shards made alike count once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Choice, read_ledger, working_ledger
from pluralbench_rewards import CheckRecord, ModelRecord, ServedRecord, Work
from pluralbench_runs import Output, difference, read_recipe

from pluralbench.data.items import Items
from pluralbench.data.persona_items import Personas, draw
from pluralbench.data.shards import Shard, shard_of
from pluralbench.data.texts import named
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.judge import legacy_number
from pluralbench.evaluation.personas import PersonaSettings, measured, without_persona
from pluralbench.evaluation.score import within
from pluralbench.evaluation.settings import JudgeSettings, ScoreSettings, run_directory
from pluralbench.metrics import measure
from pluralbench.results.decisions import decisions_of
from pluralbench.results.examples import place_of, read_again
from pluralbench.results.finding import UNFINISHED
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.record import CostRecord, JudgingRecord, ScoringRecord, ShardRecord, provenance
from pluralbench.results.runs import LEDGER_FILE, SETTINGS_FILE, Run, read_part, read_run, write_run

Settings = ScoreSettings | JudgeSettings | PersonaSettings
SETTINGS: Mapping[str, type[Settings]] = {
    "score": ScoreSettings,
    "judge": JudgeSettings,
    "judge-personas": PersonaSettings,
}
KEY = ["config", "id"]
SIDES: tuple[tuple[str, Choice], ...] = (("calls_chosen_first", "A"), ("calls_rejected_first", "B"))


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
    settings, model = _whole_settings(shards[0]), _model(shards)
    target = Path(out or _folder(shards))
    with run_directory(target, settings, fresh=fresh) as output:
        if output is not None:
            _join(output, settings, shards, model, data)
    return read_run(target)


def _shards(paths: Sequence[Path]) -> list[Run]:
    """The shards at these paths, by their numbers: all of one run, each once. Raises `RunError`."""
    # A shell's `runs/a-shard*` has the working directories of unfinished runs among its paths.
    found = [read_part(path) for path in dict.fromkeys(paths) if path.suffix != UNFINISHED]
    if not found:
        raise RunError("There is no finished shard to join; give the directories that --shard made.")
    first = found[0]
    numbers: dict[Shard, Run] = {}
    for run in found:
        if run.record.data.shard is None:
            raise RunError(f"{run.path} is a whole run and no shard of one; leave it out.")
        if differs := _differs(first, run):
            raise RunError(f"{first.path} and {run.path} are no shards of one run: {differs}.")
        shard = _shard(run)
        if shard.of != _shard(first).of:
            raise RunError(
                f"{first.path} is shard {_shard(first)} and {run.path} shard {shard}, which are shares of another "
                "size; give all shards of one number."
            )
        if shard in numbers:
            raise RunError(f"{numbers[shard].path} and {run.path} are both shard {shard}; give one of them.")
        numbers[shard] = run
    of = _shard(first).of
    missing = [str(shard) for shard in (Shard(number + 1, of) for number in range(of)) if shard not in numbers]
    if missing:
        raise RunError(
            f"Of {of:,} shards {len(missing):,} are missing ({named(missing)}): run them, or go on with those that "
            "were interrupted, by their own commands, and give all."
        )
    return [numbers[shard] for shard in sorted(numbers)]


def _shard(run: Run) -> Shard:
    return shard_of(str(run.record.data.shard))


def _differs(first: Run, other: Run) -> str:
    """In what two shards' runs differ but for the share, in words; "" in nothing."""
    verbs = first.record.verb, other.record.verb
    if verbs[0] != verbs[1]:
        return f"the first is of {verbs[0]}, the second of {verbs[1]}"
    said = difference(_whole_settings(other), _whole_settings(first))
    return said and f"settings differ ({said})"


def _whole_settings(run: Run) -> Settings:
    """What bound a shard, without its share: what binds the whole run."""
    settings = read_recipe(SETTINGS[run.record.verb], run.path / SETTINGS_FILE)
    return settings.model_copy(update={"data": settings.data.model_copy(update={"shard": None})})


def _model(shards: Sequence[Run]) -> ModelRecord:
    """The one model that scored all shards; of several devices all are named. Raises `RunError`."""
    loaded = [run for run in shards if run.items.height] or [shards[0]]  # an empty share loads no model
    first = loaded[0].record.model
    for run in loaded[1:]:
        for name, value in first:
            if name != "device" and getattr(run.record.model, name) != value:
                raise RunError(
                    f"{loaded[0].path} and {run.path} were made by different models ({name.replace('_', ' ')} "
                    f"{value}, now {getattr(run.record.model, name)}); run the shards of one of them again."
                )
    devices = sorted({run.record.model.device for run in loaded if run.record.model.device})
    return first.model_copy(update={"device": ", ".join(devices) or None})


def _folder(shards: Sequence[Run]) -> Path:
    """The shards' own name without what tells them apart. Raises `RunError` where they have no such name."""
    stems = {run.path.parent / run.path.name.removesuffix(_shard(run).word) for run in shards}
    stem = stems.pop()
    if stems or any(run.path == stem for run in shards):
        raise RunError("The shards have no name in common that the whole run could have; say where it goes with --out.")
    return stem


def _join(output: Output, settings: Settings, shards: Sequence[Run], model: ModelRecord, data: str | None) -> None:
    some = next((run for run in shards if run.items.height), shards[0])
    read = read_again(some, data, "pluralbench merge RUN... --data PLACE")
    if read.digest != some.record.data.digest:
        raise DataError(
            f"{place_of(some, data)} has other content than what the shards are of; give it as it was with --data."
        )
    items = _drawn(settings, read)
    frame = _in_order([run.items for run in shards], items)
    ledger = _ledger(output, shards) if some.record.judging is not None else None
    changes: dict[str, Any] = {"judging": ledger and _judging(shards, ledger)}
    if isinstance(settings, PersonaSettings):
        metrics = measured(output, settings, frame, items)
        bare = without_persona(frame, settings.judging.variables)
        changes["judging"] = changes["judging"].model_copy(update={"without_persona": bare})
    else:
        metrics = measure(some.record.benchmark.description, decisions_of(frame), items)
        if ledger and SIDES[0][0] in frame.columns:
            metrics = pl.concat([metrics, metrics_frame([legacy_number(_replies(frame, ledger.frame))])])
    if some.record.scoring is not None:
        changes["scoring"] = _scoring(shards, decisions_of(frame))
    whole = {
        "model": model,
        "data": some.record.data.model_copy(update={"shard": None}),
        "cost": _cost([run.record.cost for run in shards if run.record.cost is not None]),
        "provenance": provenance(),
        "shards": tuple(map(_shard_record, shards)),
    }
    write_run(output, items=frame, metrics=metrics, record=some.record.model_copy(update=whole | changes))


def _drawn(settings: Settings, read: Items | Personas) -> pl.DataFrame:
    """The items that the whole run is of, in their order."""
    if not isinstance(settings, PersonaSettings) or isinstance(read, Items):
        return read.frame
    judging = settings.judging
    return draw(
        read,
        setting=judging.setting,
        variables=judging.variables,
        samples=judging.samples,
        configs=settings.data.configs or None,
        seed=settings.seed,
    ).frame


def _in_order(parts: Sequence[pl.DataFrame], items: pl.DataFrame) -> pl.DataFrame:
    """The rows of all shards in the order of the items. Raises `RunError` where they are of other items."""
    every = pl.concat([part.select(KEY).unique().cast(pl.String) for part in parts])
    twice, lacking = every.filter(every.is_duplicated()), items.select(KEY).join(every, on=KEY, how="anti")
    beyond = every.join(items, on=KEY, how="anti")
    for wrong, said in ((twice, "have {} twice"), (lacking, "lack {}"), (beyond, "have {} that the data has not")):
        ids = wrong["id"].unique(maintain_order=True).to_list()
        if ids:
            raise RunError(
                f"The shards {said.format(f'{len(ids):,} items (ids {named(ids)})')}, so their files are no longer "
                "those that were written; run them again."
            )
    # A column of which a shard has no value has no type there.
    rows = pl.concat(parts, how="vertical_relaxed")
    places = items.select(KEY).with_row_index("place")
    return rows.join(places, on=KEY, how="left", maintain_order="left").sort("place", maintain_order=True).drop("place")


class _Calls(NamedTuple):
    """All calls of a judge, and their tokens."""

    frame: pl.DataFrame
    prompt_tokens: int
    completion_tokens: int


def _ledger(output: Output, shards: Sequence[Run]) -> _Calls:
    """The calls of all shards, written among the files of the run. Raises `RunError` for answers that contradict."""
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
            ledger.take(run.path / LEDGER_FILE)
        ledger.export(output.work / LEDGER_FILE)
        return _Calls(ledger.frame(), *ledger.usage())


def _replies(frame: pl.DataFrame, ledger: pl.DataFrame) -> Iterator[tuple[str, Choice]]:
    """The reply that each verdict rests on, which is that of its last call, with the letter of the chosen response."""
    texts = dict(ledger.select("key", "text").iter_rows())
    for row in frame.select(name for name, _ in SIDES).iter_rows():
        yield from ((texts[calls[-1]], letter) for calls, (_, letter) in zip(row, SIDES, strict=True) if calls)


def _judging(shards: Sequence[Run], calls: _Calls) -> JudgingRecord:
    parts = [run.record.judging for run in shards if run.record.judging is not None]
    return parts[0].model_copy(
        update={
            "calls": calls.frame.height,
            "prompt_tokens": calls.prompt_tokens,
            "completion_tokens": calls.completion_tokens,
            "invalid_reasons": dict(sorted(_added(part.invalid_reasons for part in parts).items())),
            "readings": _added(part.readings for part in parts),
        }
    )


def _scoring(shards: Sequence[Run], decisions: pl.DataFrame) -> ScoringRecord:
    """The counts added up; of the tolerances, each measured on some of its shard, the largest."""
    parts = [run.record.scoring for run in shards if run.record.scoring is not None and run.items.height]
    counts = ("items_truncated", "items_dropped", "items_from_an_earlier_part")
    tolerance = max((part.tolerance for part in parts), default=0.0)
    works = [part.work for part in parts if part.work is not None]
    served = [part.served for part in parts if part.served is not None]
    changes = {name: sum(getattr(part, name) for part in parts) for name in counts} | {
        "tolerance": tolerance,
        "decisions_within_tolerance": within(decisions, tolerance) if works or served else 0,
        "invalid_reasons": dict(sorted(_added(part.invalid_reasons for part in parts).items())),
        "work": _work(works) if works else None,
        "served": _served(served),
    }
    return parts[0].model_copy(update=changes)


def _work(works: Sequence[Work]) -> Work:
    """The work added up. The budget is that of the shard with the smallest one."""
    sums = ("conversations", "unique_tokens", "computed_tokens", "batches", "seconds")
    return replace(
        works[0],
        **{name: sum(getattr(work, name) for work in works) for name in sums},
        token_budget=min(work.token_budget for work in works),
        compiled=sorted({name for work in works for name in work.compiled}),
    )


def _served(parts: Sequence[ServedRecord]) -> ServedRecord | None:
    """The checks added up. Shards may have shared servers, so there were at least those of the shard with the most."""
    if not parts:
        return None
    checks = [part.check for part in parts]
    sums = ("items", "conversations", "decisions", "decisions_changed")
    check = CheckRecord(
        against=checks[0].against if len({check.against for check in checks}) == 1 else None,
        largest_difference=max(check.largest_difference for check in checks),
        **{name: sum(getattr(check, name) for check in checks) for name in sums},
    )
    return ServedRecord(
        engines=tuple(sorted({engine for part in parts for engine in part.engines})),
        servers=max(part.servers for part in parts),
        left_out=sum(part.left_out for part in parts),
        model=parts[0].model,
        check=check,
    )


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    added: Counter[str] = Counter()
    for one in counts:
        added.update(one)
    return dict(added)


def _cost(costs: Sequence[CostRecord]) -> CostRecord | None:
    """What all shards took together. A price is told where they had one alone."""
    if not costs:
        return None
    dollars = [cost.dollars for cost in costs if cost.dollars is not None]
    prices = {cost.price for cost in costs}
    return CostRecord(
        seconds=sum(cost.seconds for cost in costs),
        dollars=sum(dollars) if dollars else None,
        price=prices.pop() if len(prices) == 1 else None,
    )


def _shard_record(run: Run) -> ShardRecord:
    return ShardRecord(
        shard=str(run.record.data.shard),
        items=run.items.select(KEY).n_unique(),
        device=run.record.model.device,
        cost=run.record.cost,
        provenance=run.record.provenance,
    )
