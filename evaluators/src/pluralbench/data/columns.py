"""Columns that a benchmark reads from a table, and checks of them."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.derived import missing_source, named_columns
from pluralbench.data.fields import LISTS, ROW_NUMBER, Columns
from pluralbench.data.labels import FIRST, SECOND, Labels, label_key
from pluralbench.data.texts import first_ids, shortened
from pluralbench.errors import DataError

LAYOUTS = (("responses", "rank"), ("first", "second", "labels"), ("chosen", "rejected"))
"""Columns that hold the responses and their order; the first layout that a benchmark has a column of is used."""
MIN_QUOTED_CHARACTERS = 50
MAX_ANSWERED_PROMPTS = 10
"""Prompts that may contain the better response in any table, such as requests to improve a text."""
LIST_AS_TEXT = r"""(?s)^\s*\[\s*["'{].*\]\s*$"""
RIGHT_OR_WRONG = ("responses", "right")
"""Columns of responses that are right or wrong, if `Columns.right` is set."""
Names = dict[str, tuple[str, ...]]
"""Columns of a table by the field of `Columns`."""


def config_columns(benchmark: Benchmark, config: str, frame: pl.DataFrame) -> Columns:
    """Return the columns of a config's table."""
    columns = benchmark.columns_of(config)
    if benchmark.reference is None or config != benchmark.reference.config:
        return columns
    changed = {field: name for field, name in benchmark.reference.columns.items() if name in frame.columns}
    return columns.model_copy(update=changed)


def used_columns(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame) -> set[str]:
    """Return the columns of a table that the benchmark reads."""
    return {name for name in named_columns(benchmark, columns) if name in frame.columns}


def check_columns(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Check the columns of a table.

    Args:
        benchmark: The benchmark.
        columns: Its columns, from `config_columns`.
        frame: The table.
        where: Name of the table in errors.

    Raises:
        DataError: If a required column is missing or is used twice, or a label is unknown.
    """
    required = _required_columns(benchmark, columns, where) | {"json_texts": columns.json_texts or ()}
    named = {field: getattr(columns, field) for field in columns.explicit if field not in LISTS}
    for field, names in ({field: (name,) for field, name in named.items() if name != ROW_NUMBER} | required).items():
        for name in names:
            if name not in frame.columns:
                fix = f'name the right one with `columns=["{field}=COLUMN"]`'
                if field not in Columns.model_fields:
                    fix = "it marks the earlier pairs of each user; add it, or describe the data in a benchmark file"
                source = missing_source(frame, name)
                needed = f"`{source}`" if source == name else f"`{source}`, which `{name}` needs"
                raise DataError(f"{where} has no column {needed}; it has {', '.join(frame.columns)}: {fix}.")
    _check_json_texts(benchmark, columns, required, frame, where)
    texts = {field: names for field, names in required.items() if field in {"prompt", *chain(*LAYOUTS)}}
    for name, count in Counter(chain(*texts.values())).items():
        if count > 1:
            fields = " and ".join(f"`{field}`" for field, names in texts.items() if name in names)
            raise DataError(
                f"{where}: the column `{name}` is used as {fields}; name another column for one of them, and split "
                "texts that contain both prompt and response."
            )
    if "labels" in required:
        _check_labels(benchmark.labels, columns, frame, where)
    if "right" in required:
        _check_right(benchmark.labels, columns, frame, where)


def _check_json_texts(benchmark: Benchmark, columns: Columns, required: Names, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for columns of texts of which each cell is a list written as text, and not named as JSON."""
    if columns.json_texts == ():
        return
    sides = () if benchmark.multiple_responses else ("chosen", "rejected", "first", "second")
    texts = chain(*(required.get(field, ()) for field in ("prompt", *sides)))
    named = columns.json_texts or ()
    lists = [name for name in texts if name not in named and _are_lists_as_texts(frame[name].drop_nulls())]
    if lists:
        raise DataError(
            f"{where}: each cell of {' and of '.join(f'`{name}`' for name in lists)} is a list written as text; read "
            f'it with `columns=["json_texts={",".join([*named, *lists])}"]`, or say in a benchmark file that it is the '
            "text: `json_texts = []`."
        )


def _are_lists_as_texts(values: pl.Series) -> bool:
    return values.dtype == pl.String and len(values) > 0 and values.str.contains(LIST_AS_TEXT).all()


def _required_columns(benchmark: Benchmark, columns: Columns, where: str) -> Names:
    prompt = {"prompt": columns.prompt}
    if benchmark.history is None:
        return prompt if benchmark.prompts_only else prompt | _response_columns(benchmark, columns, where)
    user = {"cluster": (columns.cluster,)} if columns.cluster else {}
    history = {"earlier": (benchmark.history.column,)} if benchmark.history.column else {}
    return prompt | _response_columns(benchmark, columns, where) | user | history


def _response_columns(benchmark: Benchmark, columns: Columns, where: str) -> Names:
    """Return the columns of the responses and their order."""
    present_layouts = (layout for layout in LAYOUTS if any(getattr(columns, field) for field in layout))
    layout = RIGHT_OR_WRONG if columns.right else next(present_layouts)
    missing = [field for field in layout if field != "rank" and not getattr(columns, field)]
    others = [field for field in columns.explicit if field in chain(*LAYOUTS) and field not in layout]
    if missing or others or (benchmark.multiple_responses and layout != LAYOUTS[-1]):
        present = [f"`{field}`" for field in (*layout, *others) if getattr(columns, field)]
        present += ["`multiple_responses`"] * benchmark.multiple_responses
        ways = ", or ".join(" and ".join(f"`{field}`" for field in way) for way in (*LAYOUTS, RIGHT_OR_WRONG))
        raise DataError(
            f"{where}: {' and '.join(present)} do not determine the better response; name the columns {ways}."
        )
    further = [field for field in ("group", "compared") if getattr(columns, field)]
    names = {field: getattr(columns, field) or field for field in (*layout, *further)}
    return {field: name if isinstance(name, tuple) else (name,) for field, name in names.items()}


def _check_labels(labels: Labels, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for unknown labels and for rows without a label."""
    ids = frame[columns.id].to_list() if columns.id in frame.columns else range(frame.height)
    unknown: dict[tuple[str, str], str] = {}
    unlabeled = []
    for row_id, row in zip(ids, frame.select(columns.labels).iter_rows(), strict=True):
        cells = [(name, label) for name, label in zip(columns.labels, row, strict=True) if label_key(label) is not None]
        unlabeled += [] if cells else [str(row_id)]
        for name, label in cells:
            if labels.meaning(label) is None:
                unknown.setdefault((name, shortened(label)), str(row_id))
    if unknown:
        examples = [f"{label} in `{name}` at id {row_id}" for (name, label), row_id in unknown.items()]
        raise DataError(
            f"{where} has unknown labels ({first_ids(examples)}); expected: {labels.expected}. Define them, such as "
            '`labels=["first=A>B", "second=B>A"]`, or name a `scale`.'
        )
    if unlabeled:
        label_columns = " or ".join(f"`{name}`" for name in columns.labels)
        raise DataError(
            f"{where} has {len(unlabeled):,} pairs without a label in {label_columns} (ids {first_ids(unlabeled)}); "
            "label or remove them."
        )


def _check_right(labels: Labels, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for labels that say neither that a response is right nor that it is wrong."""
    column = str(columns.right)
    seen = frame[column].explode() if isinstance(frame[column].dtype, pl.List) else frame[column]
    values = seen.unique(maintain_order=True).to_list()
    unknown = [value for value in values if labels.meaning(value) not in {FIRST, SECOND}]
    if unknown:
        raise DataError(
            f"{where} has unknown labels in `{column}` ({first_ids([*map(shortened, unknown)])}); expected: "
            f'{labels.right_or_wrong}. Define them, such as `labels=["first=true", "second=false"]`.'
        )


def answered_prompts(items: pl.DataFrame) -> list[str]:
    """Return the ids of items whose prompt contains a best response and no worse one, and so reveals the answer.

    Responses with fewer than `MIN_QUOTED_CHARACTERS` characters, which a prompt may contain by chance, count only if
    they are the whole prompt.
    """
    text = pl.col("prompt").list.eval(pl.element().struct.field("content")).list.join("\n").str.strip_chars()
    best = pl.col("rank").list.eval(pl.element() == pl.element().min())
    each = items.select("id", "responses", text=text, best=best).explode("responses", "best")
    response, best = pl.col("responses").str.strip_chars(), pl.col("best")
    contained = pl.col("text").str.contains(response, literal=True)
    quoted = contained & (
        (response.str.len_chars() >= MIN_QUOTED_CHARACTERS) | ((response == pl.col("text")) & (response != ""))
    )
    answered = (quoted & best).any() & ~(contained & ~best).any() & (~best).any()
    return each.group_by("id", maintain_order=True).agg(answered=answered).filter("answered")["id"].to_list()


def check_prompts(items: pl.DataFrame, answered: Sequence[str], where: str) -> None:
    """Check that most prompts do not contain the better response, as the prompts of transcripts do.

    Args:
        items: The items of a table.
        answered: Ids from `answered_prompts`.
        where: Name of the table in errors.

    Raises:
        DataError: If more than half of the prompts contain it.
    """
    if len(answered) > max(items.height / 2, MAX_ANSWERED_PROMPTS):
        raise DataError(
            f"{where}: {len(answered):,} of {items.height:,} prompts contain the better response (ids "
            f"{first_ids(answered)}); end prompts before the response."
        )
