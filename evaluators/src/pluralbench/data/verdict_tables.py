"""Tables of verdicts: a judge's answer to each item, its stated certainty, and the true answer."""

from collections.abc import Sequence

import polars as pl
from pluralbench_release import read_tables
from pluralbench_tables import unescape_formulas
from polars.exceptions import PolarsError

from pluralbench.errors import DataError

GROUP = ("task", "judge", "setting", "persona_variables")
COLUMNS = (*GROUP, "row", "answer", "certainty", "truth")
PERSON_COLUMNS = ("user", "person")
ANSWERS = ("A", "B", "C")
TIE = "tie"
# A single letter in any case and width, with any brackets, quotes and punctuation.
PUNCTUATION = r"[\s\[\](){}<>\x22'*.,:;!、。【】「」『』《》〈〉“”‘’`_]*"
SINGLE_LETTER = f"^{PUNCTUATION}([ABC]){PUNCTUATION}$"
MOSTLY_INVALID = 0.9  # fraction of invalid answers that indicates a problem of the table instead of the judge
MAX_VALUES = 3  # values in a note
MISSING = ("", "na", "n/a", "nan", "null", "none")  # ways to write a missing certainty


def read_verdicts(*locations: str) -> pl.DataFrame:
    """Read the verdicts of CSV, JSON Lines or Parquet files as one table; see `check_verdicts`."""
    frames = [_as_given(read_single_table(location, "verdicts"), location) for location in locations]
    return _normalized(pl.concat(frames, how="diagonal"), " and ".join(locations))


def check_verdicts(frame: pl.DataFrame, where: str = "The table of verdicts") -> pl.DataFrame:
    """Check a table of verdicts and normalize its answers.

    Args:
        frame: One row per answer of a judge to an item, with the columns `COLUMNS` of any type. `row` is the number or
            id of the item within its task. The optional column `user` or `person` names the person; the optional `id`
            names the item across tasks. Other columns are ignored.
        where: Name of the table in errors.

    Returns:
        A table with `task`, `judge`, `setting`, `persona_variables`, `row`, `id` (if present), and

        - truth: A, B or C. C is a tie, also written "tie"; letters may be lower-case and in brackets.
        - given: the answer as written.
        - answer: the normalized answer; null if invalid. C is valid only in the setting "tie", or if the truth of a row
          with the same task, judge, setting and variables is C.
        - certainty: 1 to 100; null for everything else.
        - unusable: whether a certainty is present but not a number from 1 to 100, such as 0 or "ninety".
        - options: number of possible answers, 2 or 3.
        - cluster: cluster of the row for intervals; clustered_by: the column it comes from.

    Raises:
        DataError: If a column is missing, a cell that identifies the row is empty, a truth has another value, or a
            judge has two answers to an item. The message names the row.
    """
    return _normalized(_as_given(frame, where), where)


def _as_given(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    """The columns of a table as texts, and the cluster of each row; a row without a truth or a group is refused."""
    frame = texts(frame, COLUMNS, (*PERSON_COLUMNS, "id"), where)
    for name in (*GROUP, "row", "truth"):
        raise_for_row(frame, pl.col(name).is_null(), f"has no `{name}`; add it or remove the row", where)
    truth, letters = normalize_letter("truth"), ", ".join(ANSWERS)
    raise_for_row(frame, truth.is_null(), f"has the truth {{truth!r}}, which is not one of {letters} and {TIE}", where)
    person = next((name for name in PERSON_COLUMNS if name in frame.columns), None)
    row = pl.format("row {}", "row")
    return frame.with_columns(
        # A row without a person is its own cluster; the prefix separates row numbers from names.
        (row if person is None else pl.coalesce(pl.format("person {}", person), row)).alias("cluster"),
        pl.lit(person or "row").alias("clustered_by"),
        truth=truth,
    )


def _normalized(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    duplicates = frame.group_by(*GROUP, "row", maintain_order=True).len().filter(pl.col("len") > 1)
    if duplicates.height:
        task, judge, setting, variables, row, times = duplicates.row(0)
        raise DataError(
            f"{where} has {times} rows with the task {task}, row {row}, judge {judge}, setting {setting} and variables "
            f"{variables}; keep one."
        )
    frame = frame.with_columns(given="answer", answer=normalize_letter("answer"), **certainty_columns())
    may_tie = ((pl.col("setting") == TIE) | (pl.col("truth") == "C").any()).over(GROUP)
    return frame.select(
        *(name for name in (*GROUP, "row", "id") if name in frame.columns),
        "truth",
        "given",
        pl.when((pl.col("answer") != "C") | may_tie).then("answer").alias("answer"),
        "certainty",
        "unusable",
        pl.when(may_tie).then(3).otherwise(2).alias("options"),
        "cluster",
        "clustered_by",
    )


def answer_notes(verdicts: pl.DataFrame) -> list[str]:
    """Return notes for readers about answers that are not plain letters, and about mostly invalid answers."""
    notes = []
    given, answer = pl.col("given"), pl.col("answer")
    read = verdicts.filter(answer.is_not_null() & (given != answer) & (given.str.to_lowercase() != TIE))
    if read.height:
        notes.append(f"Read as {', '.join(ANSWERS)}: {read.height:,} answers written as {_first(read)}.")
    invalid = verdicts.filter(answer.is_null())
    if invalid.height >= MOSTLY_INVALID * verdicts.height:
        notes.append(
            f"{invalid.height:,} of {verdicts.height:,} answers are invalid: {_first(invalid)}. Valid answers are A, B "
            f"and, if ties are possible, C or {TIE}; correct the table and rerun."
        )
    return notes


def _first(verdicts: pl.DataFrame) -> str:
    values = verdicts["given"].unique(maintain_order=True).to_list()
    named = ", ".join("nothing" if value is None else repr(value[:40]) for value in values[:MAX_VALUES])
    return named + (", …" if len(values) > MAX_VALUES else "")


def read_single_table(location: str, what: str) -> pl.DataFrame:
    """Read a location that holds one table; `what` names its content in errors, such as "verdicts".

    Raises:
        DataError: If the location holds several tables.
        TablesError: If it cannot be read.
    """
    frames = read_tables(location).frames
    if len(frames) > 1:
        raise DataError(f"{location} holds several tables ({', '.join(frames)}); pass the file with the {what}.")
    return next(iter(frames.values()))


def texts(frame: pl.DataFrame, needed: Sequence[str], further: Sequence[str], where: str) -> pl.DataFrame:
    """Return the columns that are `needed`, and `further` ones, as stripped texts; empty texts become null.

    Raises:
        DataError: If a required column is missing, a column is nested, or there are no rows.
    """
    frame = unescape_formulas(frame)  # tables that commands wrote as CSV
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise DataError(
            f"{where} has no column `{missing[0]}`; it has {', '.join(frame.columns) or 'none'}; required: "
            f"{', '.join(needed)}."
        )
    if frame.is_empty():
        raise DataError(f"{where} has no rows.")
    named = [name for name in (*needed, *further) if name in frame.columns]
    for name in named:
        if frame[name].dtype.is_nested():
            raise DataError(f"{where}: the column `{name}` holds lists or objects; write one text or number per row.")
    try:
        text = frame.select(pl.col(named).cast(pl.String).str.strip_chars())
    except PolarsError:
        raise DataError(f"{where} has columns that are neither text nor numbers; write them as text.") from None
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))


def raise_for_row(frame: pl.DataFrame, wrong: pl.Expr, because: str, where: str) -> None:
    """Raise `DataError` that names the first row for which `wrong` is true.

    `because` says what is wrong as a format string that may name columns, such as "has the truth {truth!r}".
    """
    wrong_rows = frame.with_row_index("number", offset=1).filter(wrong)
    if wrong_rows.height:
        first = wrong_rows.row(0, named=True)
        raise DataError(f"{where}: row {first['number']} of the table {because.format(**first)}.")


def certainty_columns() -> dict[str, pl.Expr]:
    """Return expressions for `certainty` (1 to 100, else null) and `unusable` (present but not such a number)."""
    number = pl.col("certainty").cast(pl.Float64, strict=False)
    usable = number.is_between(1, 100).fill_null(value=False)
    given = ~pl.col("certainty").str.to_lowercase().is_in(MISSING).fill_null(value=True)
    return {"certainty": pl.when(usable).then(number), "unusable": given & ~usable}


def normalize_letter(name: str) -> pl.Expr:
    """Return an expression for a column's A, B or C in any spelling ("tie" is C); null for anything else."""
    text = pl.col(name)
    letter = text.str.normalize("NFKC").str.to_uppercase().str.extract(SINGLE_LETTER)
    return pl.when(text.str.to_lowercase() == TIE).then(pl.lit("C")).otherwise(letter)
