"""Tables of verdicts: what a judge answered about each item, how sure it said it was, and what is true."""

from collections.abc import Sequence

import polars as pl
from pluralbench_release import read_tables
from polars.exceptions import PolarsError

from pluralbench.errors import DataError

GROUP = ("task", "judge", "setting", "persona_variables")
COLUMNS = (*GROUP, "row", "answer", "certainty", "truth")
PEOPLE = ("user", "person")
ANSWERS = ("A", "B", "C")
TIE = "tie"
# A letter alone, whatever its case, width, brackets, quotes and stops.
AROUND = r"[\s\[\](){}<>\x22'*.,:;!、。【】「」『』《》〈〉“”‘’`_]*"
ALONE = f"^{AROUND}([ABC]){AROUND}$"
MOSTLY = 0.9  # share of invalid answers from which something is wrong with the table rather than with the judge
SHOWN = 3
NOTHING = ("", "na", "n/a", "nan", "null", "none")  # what people write where no certainty was asked for


def read_verdicts(location: str) -> pl.DataFrame:
    """The verdicts of a CSV, JSON Lines or Parquet file, checked by `check_verdicts`.

    Raises `DataError` as `check_verdicts` does, and `TablesError` for what cannot be read.
    """
    return check_verdicts(read_single_table(location, "verdicts"), location)


def check_verdicts(frame: pl.DataFrame, where: str = "The table of verdicts") -> pl.DataFrame:
    """Verdicts in the one shape that is measured: a row for each answer of a judge to an item.

    frame: with the columns `COLUMNS`, of any type. `row` is the number or id of an item within its task. A column
    `user` or `person` says whose taste the item is about; `id` names the item across tasks. Others are left out.

    Returns `task`, `judge`, `setting`, `persona_variables`, `row`, `id` where there is one, and

    - truth: A, B or C, the last for a tie, which may also be written "tie"; a letter may be small and in brackets;
    - given: the answer as it was written;
    - answer: it read in the same way, null where it is invalid. C is an answer only where a tie can be one: in the
      setting "tie", or where the truth of some row of the same task, judge, setting and variables is C;
    - certainty: 1 to 100, null for everything else;
    - unusable: whether there is a certainty that is none, such as 0, 101 or "ninety";
    - options: how many answers there are to choose from, 2 or 3;
    - cluster: what intervals take as drawn, and clustered_by: which column it is.

    Raises `DataError`, naming the row, for a missing column, an empty cell in what tells rows apart, a truth that is
    none of these, and an item that a judge answered twice under the same setting and variables.
    """
    frame = texts(frame, COLUMNS, (*PEOPLE, "id"), where)
    for name in (*GROUP, "row", "truth"):
        raise_for_row(frame, pl.col(name).is_null(), f"has no `{name}`; give one, or take the row out", where)
    truth, known = normalize_letter("truth"), ", ".join(ANSWERS)
    raise_for_row(frame, truth.is_null(), f"has a truth that is none of {known} and {TIE}: {{truth!r}}", where)
    duplicates = frame.group_by(*GROUP, "row", maintain_order=True).len().filter(pl.col("len") > 1)
    if duplicates.height:
        task, judge, setting, variables, row, times = duplicates.row(0)
        raise DataError(
            f"{where} has row {row} of the task {task} {times} times for the judge {judge}, setting {setting}, "
            f"variables {variables}; keep one of them."
        )
    frame = frame.with_columns(truth=truth, given="answer", answer=normalize_letter("answer"), **certainty_columns())
    may_tie = ((pl.col("setting") == TIE) | (pl.col("truth") == "C").any()).over(GROUP)
    person = next((name for name in PEOPLE if name in frame.columns), None)
    row = pl.format("row {}", "row")
    return frame.select(
        *(name for name in (*GROUP, "row", "id") if name in frame.columns),
        "truth",
        "given",
        pl.when((pl.col("answer") != "C") | may_tie).then("answer").alias("answer"),
        "certainty",
        "unusable",
        pl.when(may_tie).then(3).otherwise(2).alias("options"),
        # A row that names nobody is its own cluster, apart from every name.
        (row if person is None else pl.coalesce(pl.format("person {}", person), row)).alias("cluster"),
        pl.lit(person or "row").alias("clustered_by"),
    )


def answer_notes(verdicts: pl.DataFrame) -> list[str]:
    """What a reader of numbers over these verdicts (of `check_verdicts`) has to know of how the answers were written.

    It says which answers were read though they are no plain letter, and what the answers are where hardly one of them
    can be read.
    """
    said = []
    given, answer = pl.col("given"), pl.col("answer")
    read = verdicts.filter(answer.is_not_null() & (given != answer) & (given.str.to_lowercase() != TIE))
    if read.height:
        said.append(f"Read as {', '.join(ANSWERS)}: {read.height:,} answers written as {_first(read)}.")
    invalid = verdicts.filter(answer.is_null())
    if invalid.height >= MOSTLY * verdicts.height:
        said.append(
            f"{invalid.height:,} of {verdicts.height:,} answers are invalid: {_first(invalid)}. An answer is A or B, "
            f"or where a tie can be one C or {TIE}; write them so, and make the numbers again."
        )
    return said


def _first(verdicts: pl.DataFrame) -> str:
    values = verdicts["given"].unique(maintain_order=True).to_list()
    named = ", ".join("nothing" if value is None else repr(value[:40]) for value in values[:SHOWN])
    return named + (", …" if len(values) > SHOWN else "")


def read_single_table(location: str, what: str) -> pl.DataFrame:
    """The rows of a place that holds one table. Raises `DataError`, and `TablesError` for what cannot be read."""
    frames = read_tables(location).frames
    if len(frames) > 1:
        raise DataError(f"{location} holds several tables ({', '.join(frames)}); give the one with the {what}.")
    return next(iter(frames.values()))


def texts(frame: pl.DataFrame, needed: Sequence[str], further: Sequence[str], where: str) -> pl.DataFrame:
    """These columns as texts without spaces around them, null where nothing is left. Raises `DataError`."""
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise DataError(
            f"{where} has no column `{missing[0]}`; it has {', '.join(frame.columns) or 'none'}, and needs "
            f"{', '.join(needed)}."
        )
    if frame.is_empty():
        raise DataError(f"{where} has no rows.")
    named = [name for name in (*needed, *further) if name in frame.columns]
    for name in named:
        if frame[name].dtype.is_nested():
            raise DataError(f"{where}: the column `{name}` holds lists or objects; give one text or number a row.")
    try:
        text = frame.select(pl.col(named).cast(pl.String).str.strip_chars())
    except PolarsError:
        raise DataError(f"{where} has columns that are neither text nor numbers; write them as text.") from None
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))


def raise_for_row(frame: pl.DataFrame, wrong: pl.Expr, because: str, where: str) -> None:
    """Raise `DataError` with the number of the first row that is wrong, from 1; `because` may name its cells."""
    found = frame.with_row_index("number", offset=1).filter(wrong)
    if found.height:
        first = found.row(0, named=True)
        raise DataError(f"{where}: row {first['number']} of the table {because.format(**first)}.")


def certainty_columns() -> dict[str, pl.Expr]:
    """`certainty` as a number from 1 to 100, null for anything else, and `unusable` where it is something else."""
    number = pl.col("certainty").cast(pl.Float64, strict=False)
    usable = number.is_between(1, 100).fill_null(value=False)
    given = ~pl.col("certainty").str.to_lowercase().is_in(NOTHING).fill_null(value=True)
    return {"certainty": pl.when(usable).then(number), "unusable": given & ~usable}


def normalize_letter(name: str) -> pl.Expr:
    """A column's A, B or C, written as it may be, the last also where it says "tie"; null for anything else."""
    text = pl.col(name)
    one = text.str.normalize("NFKC").str.to_uppercase().str.extract(ALONE)
    return pl.when(text.str.to_lowercase() == TIE).then(pl.lit("C")).otherwise(one)
