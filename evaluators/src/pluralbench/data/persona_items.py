"""Items of the persona judge: read, check and sample them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import polars as pl
from pluralbench_runs import digest, rng_for
from pluralbench_schemas import PERSONA_ITEMS, TableError, validate

from pluralbench.config import PersonaJudgeConfig
from pluralbench.data.samples import read_data
from pluralbench.errors import DataError

# Columns that no judge sees may be missing.
OPTIONAL_COLUMNS: dict[str, Any] = {"origin_a": "?", "origin_b": "?", "gap": None, "rank_calls": []}
TIE = "tie"
REQUIRED_COLUMNS = {name: kind for name, kind in PERSONA_ITEMS.columns.items() if name not in OPTIONAL_COLUMNS}
PERSONA_JUDGE: Literal["persona-judge"] = "persona-judge"


@dataclass(frozen=True)
class PersonaItems:
    """Items of the persona judge.

    Attributes:
        frame: One row per item: `config`, `row` (its number in its table, from 0), `digest` of its content, and the
            columns of `PERSONA_ITEMS` that a judge needs.
        digest: SHA-256 of all items of the data.
        ignored: Columns that are not read.
        ties: Number of tied items that the setting leaves out, by task.
        skipped: Tasks that the setting leaves out, with the reason, such as "no ties".
    """

    frame: pl.DataFrame
    location: str
    revision: str | None
    license: str | None
    digest: str
    ignored: list[str]
    rows: dict[str, int] = field(default_factory=dict)
    ties: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def source(self) -> dict[str, Any]:
        """Fields of `DataRecord` that describe the items."""
        own = {name: getattr(self, name) for name in ("location", "revision", "digest", "license", "rows")}
        return own | {"ignored_columns": tuple(self.ignored)}


def load_personas(data: str | None, *, configs: Sequence[str] | None = None, split: str = "test") -> PersonaItems:
    """Read items with the columns of `PERSONA_ITEMS`; each config is a task.

    `data` is a directory, a file, ORG/NAME[@REVISION] or "sample"; there is no default dataset.

    Raises:
        DataError: If a table has another shape, or there is no location.
        TablesError: If the data cannot be read.
    """
    tables = read_data(data, title="Persona judge", sample=PERSONA_JUDGE, split=split, configs=configs)
    frames: list[pl.DataFrame] = []
    digests: dict[str, list[str]] = {}
    ignored: set[str] = set()
    tasks: dict[str, str] = {}
    for config, source in tables.frames.items():
        where = tables.paths[config]
        frame = _check_table(source, where)
        ignored |= set(source.columns) - {*PERSONA_ITEMS.columns}
        task = frame["task"][0]
        if task in tasks:
            raise DataError(f"{where} and {tasks[task]} both have the task {task}; join them or rename one.")
        tasks[task] = where
        item_digests = pl.Series("digest", [_digest(row) for row in frame.iter_rows(named=True)], pl.String)
        digests[config] = item_digests.to_list()
        frames.append(
            frame.select(pl.lit(config).alias("config"), *REQUIRED_COLUMNS, item_digests).with_row_index("row")
        )
    rows = {config: len(own) for config, own in sorted(digests.items())}
    place = tables.location, tables.revision, tables.license
    return PersonaItems(pl.concat(frames), *place, digest(digests), sorted(ignored), rows)


def _digest(row: Mapping[str, Any]) -> str:
    """Return the digest of everything that a judge sees, and of the right answer."""
    texts = [row[name] for name in REQUIRED_COLUMNS if name != "persona"]
    return digest([texts, [[entry["sentence"], entry["sets"] or []] for entry in row["persona"]]])[:16]


def _check_table(source: pl.DataFrame, where: str) -> pl.DataFrame:
    missing = [name for name in REQUIRED_COLUMNS if name not in source.columns]
    if missing:
        raise DataError(
            f"{where} has no column `{missing[0]}`; it has {', '.join(source.columns)}; "
            f"required: {', '.join(REQUIRED_COLUMNS)}."
        )
    if not _are_personas(source.schema["persona"]):
        raise DataError(
            f"{where}: `persona` must be a list of objects with variable, value, sentence and sets (a list of names), "
            f"not {source.schema['persona']}."
        )
    # Converted through objects, since a JSON file may lack keys that are null in all rows.
    frame = pl.DataFrame(source.select(*REQUIRED_COLUMNS).to_dicts(), schema=REQUIRED_COLUMNS)
    frame = frame.with_columns(pl.col("persona").list.drop_nulls())
    others = [pl.lit(value, dtype=PERSONA_ITEMS.columns[name]).alias(name) for name, value in OPTIONAL_COLUMNS.items()]
    try:
        validate(frame.with_columns(others), PERSONA_ITEMS, file=where)
    except TableError as error:
        raise DataError(str(error)) from None
    return frame


def _are_personas(kind: pl.DataType) -> bool:
    """Return whether a column of this type can hold personas; an empty column has the type null."""
    if not isinstance(kind, pl.List):
        return kind == pl.Null
    if not isinstance(kind.inner, pl.Struct):
        return kind.inner == pl.Null
    fields = {field.name: field.dtype for field in kind.inner.fields}
    return {"variable", "value", "sentence", "sets"} <= {*fields} and isinstance(fields["sets"], pl.List | pl.Null)


def sample_items(
    personas: PersonaItems, judging: PersonaJudgeConfig, *, configs: Sequence[str] = (), seed: int = 0
) -> PersonaItems:
    """Sample the items of a setting.

    Ties are only judged in the setting "tie", which leaves out tasks without ties. A variable set leaves out tasks
    without any of its variables. Whether an item is drawn depends only on the seed, its task and its id.

    Raises:
        DataError: If a config in `configs`, which the caller named, or all configs have no items of this setting.
    """
    setting, variables = judging.setting, judging.variables
    parts = personas.frame.partition_by("task", "config", as_dict=True, maintain_order=True)
    reasons = {names: _skip_reason(part, setting, variables) for names, part in parts.items()}
    skipped = {str(task): reason for (task, _), reason in reasons.items() if reason}
    if skipped and (configs or len(skipped) == len(parts)):
        task, reason = next(iter(skipped.items()))
        usable = [config for (_, config), skip in reasons.items() if not skip]
        others = "`configs=[" + ", ".join(f'"{config}"' for config in usable) + "]`, " if usable else ""
        raise DataError(
            f'{personas.location}: the task {task} has {reason}, so `setting="{setting}"` with '
            f'`variables="{variables}"` has no items; choose {others}another setting or other variables.'
        )
    frame = personas.frame.filter(~pl.col("task").is_in([*skipped]))
    ties: dict[str, int] = {}
    if setting != TIE:
        ties = dict(frame.filter(truth=TIE)["task"].value_counts(sort=False).sort("task").iter_rows())
        frame = frame.filter(pl.col("truth") != TIE)
    if judging.limit is not None:
        turns = [rng_for(seed, "sample", task, item).random() for task, item in frame.select("task", "id").iter_rows()]
        drawn = frame.with_columns(turn=pl.Series(turns, dtype=pl.Float64))
        frame = drawn.filter(pl.col("turn").rank("ordinal").over("task") <= judging.limit).drop("turn")
    return replace(personas, frame=frame, ties=ties, skipped=skipped)


def _skip_reason(items: pl.DataFrame, setting: str, variables: str) -> str:
    """Return what leaves a task without items to judge; "" if there are some."""
    is_tie = items["truth"] == TIE
    if setting == TIE and not is_tie.any():
        return "no ties"
    if setting != TIE and is_tie.all():
        return "only ties"
    sets = {name for persona in items["persona"] for entry in persona for name in entry["sets"] or ()}
    return "" if variables in {"all", "none", *sets} else f"no variable of the set {variables}"
