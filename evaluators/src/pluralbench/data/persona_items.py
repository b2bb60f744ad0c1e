"""The items of the persona judge: read, checked, and drawn for a setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from pluralbench_runs import digest, rng_for
from pluralbench_schemas import PersonaItems, TableError, validate

from pluralbench.config import Setting
from pluralbench.data.benchmarks import PERSONA_JUDGE
from pluralbench.data.samples import read_data
from pluralbench.errors import DataError

SHAPE = PersonaItems.row_types()
# What a judge is never shown may be missing.
UNSHOWN: dict[str, Any] = {"origin_a": "?", "origin_b": "?", "gap": None, "rank_calls": []}
COLUMNS = {name: kind for name, kind in SHAPE.items() if name not in UNSHOWN}
TIE = "tie"


@dataclass(frozen=True)
class PersonaItemSet:
    """The items that can be judged.

    frame: a row an item: `config`, `row` (its number in its table, from 0), `digest` of its content, and the columns of
    `PersonaItems` that a judge needs. digest: of all of them.
    """

    frame: pl.DataFrame
    location: str
    revision: str | None
    license: str | None
    digest: str
    ignored: list[str]


@dataclass(frozen=True)
class SampledItems:
    """The items of a run. ties: how many were left out, by task, since the setting has no ties; skipped: tasks that
    were left out, each with what it has, such as "no ties"."""

    frame: pl.DataFrame
    ties: dict[str, int]
    skipped: dict[str, str]


def load_personas(data: str | None, *, configs: Sequence[str] | None = None, split: str = "test") -> PersonaItemSet:
    """Read items with the columns of `PersonaItems`, a config for each task.

    Raises `DataError` for tables that are not of this shape, and `TablesError` for what cannot be read.
    """
    tables = read_data(data, title="Persona judge", sample=PERSONA_JUDGE, split=split, configs=configs)
    frames: list[pl.DataFrame] = []
    digests: dict[str, list[str]] = {}
    ignored: set[str] = set()
    tasks: dict[str, str] = {}
    for config, source in tables.frames.items():
        where = tables.paths[config]
        frame = _checked(source, where)
        ignored |= set(source.columns) - {*SHAPE}
        task = frame["task"][0]
        if task in tasks:
            raise DataError(f"{where} and {tasks[task]} are both of the task {task}; put them together or rename one.")
        tasks[task] = where
        own = pl.Series("digest", [_digest(row) for row in frame.iter_rows(named=True)], pl.String)
        digests[config] = own.to_list()
        frames.append(frame.select(pl.lit(config).alias("config"), *COLUMNS, own).with_row_index("row"))
    whole = pl.concat(frames)
    return PersonaItemSet(whole, tables.location, tables.revision, tables.license, digest(digests), sorted(ignored))


def _digest(row: Mapping[str, Any]) -> str:
    """Of all that is shown, and of what is right."""
    texts = [row[name] for name in COLUMNS if name != "persona"]
    return digest([texts, [[entry["sentence"], entry["sets"] or []] for entry in row["persona"]]])[:16]


def _checked(source: pl.DataFrame, where: str) -> pl.DataFrame:
    """The columns that are needed, in their types."""
    missing = [name for name in COLUMNS if name not in source.columns]
    if missing:
        raise DataError(
            f"{where} has no column `{missing[0]}`; it has {', '.join(source.columns)}, and items of the persona judge "
            f"have {', '.join(COLUMNS)}."
        )
    if not _are_personas(source.schema["persona"]):
        raise DataError(
            f"{where}: `persona` must be a list of objects with variable, value, sentence and sets, the last a list of "
            f"names, not {source.schema['persona']}."
        )
    # Through objects: a JSON file may lack keys that are null in all of its rows.
    frame = pl.DataFrame(source.select(*COLUMNS).to_dicts(), schema=COLUMNS)
    frame = frame.with_columns(pl.col("persona").list.drop_nulls())
    others = [pl.lit(value, dtype=SHAPE[name]).alias(name) for name, value in UNSHOWN.items()]
    try:
        validate(frame.with_columns(others), PersonaItems, file=where)
    except TableError as error:
        raise DataError(str(error)) from None
    return frame


def _are_personas(kind: pl.DataType) -> bool:
    """Whether a column of this type can be personas; one that is empty everywhere has a type of nothing."""
    if not isinstance(kind, pl.List):
        return kind == pl.Null
    if not isinstance(kind.inner, pl.Struct):
        return kind.inner == pl.Null
    fields = {field.name: field.dtype for field in kind.inner.fields}
    return {"variable", "value", "sentence", "sets"} <= {*fields} and isinstance(fields["sets"], pl.List | pl.Null)


def sample_items(
    personas: PersonaItemSet,
    *,
    setting: Setting,
    variables: str,
    samples: int | None = None,
    configs: Sequence[str] | None = None,
    seed: int = 0,
) -> SampledItems:
    """The items that a setting asks about: at most `samples` of each task, exactly so many where there are enough.

    Ties are asked about in the setting "tie" alone, and only of tasks that have some; a set of variables only of tasks
    that have one of it. An item's turn depends on the seed, its task and its id alone.

    Raises `DataError` for a task that was named (`configs`) and cannot be asked about so, and where none can.
    """
    parts = personas.frame.partition_by("task", "config", as_dict=True, maintain_order=True)
    found = {names: _unasked(part, setting, variables) for names, part in parts.items()}
    skipped = {str(task): why for (task, _), why in found.items() if why}
    if skipped and (configs is not None or len(skipped) == len(parts)):
        task, why = next(iter(skipped.items()))
        others = "".join(f"--config {config} " for (_, config), none in found.items() if not none)
        raise DataError(
            f"{personas.location}: the task {task} has {why}, so --setting {setting} with --variables {variables} asks "
            f"nothing of it; choose {others and f'{others.strip()}, or '}another setting or other variables."
        )
    frame = personas.frame.filter(~pl.col("task").is_in([*skipped]))
    ties: dict[str, int] = {}
    if setting != TIE:
        ties = dict(frame.filter(truth=TIE)["task"].value_counts(sort=False).sort("task").iter_rows())
        frame = frame.filter(pl.col("truth") != TIE)
    if samples is not None:
        turns = [rng_for(seed, "sample", task, item).random() for task, item in frame.select("task", "id").iter_rows()]
        drawn = frame.with_columns(turn=pl.Series(turns, dtype=pl.Float64)).with_columns(
            turn=pl.col("turn").rank("ordinal").over("task")
        )
        frame = drawn.filter(pl.col("turn") <= samples).drop("turn")
    return SampledItems(frame, ties, skipped)


def _unasked(items: pl.DataFrame, setting: Setting, variables: str) -> str:
    """What a task has that leaves nothing to ask, or ""."""
    is_tie = items["truth"] == TIE
    if setting == TIE and not is_tie.any():
        return "no ties"
    if setting != TIE and is_tie.all():
        return "only ties"
    sets = {name for persona in items["persona"] for entry in persona for name in entry["sets"] or ()}
    return "" if variables in {"all", "none", *sets} else f"no variable of the set {variables}"
