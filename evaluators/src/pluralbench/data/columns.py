"""Which columns of a table are read, and whether a benchmark's entry fits them."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import polars as pl

from pluralbench.data.benchmarks import LISTS, ROW_NUMBER, Benchmark, Columns
from pluralbench.data.labels import Labels, label_key
from pluralbench.data.texts import first_ids, shortened
from pluralbench.errors import DataError

KINDS = (("responses", "rank"), ("first", "second", "labels"), ("chosen", "rejected"))
"""What says where responses are and which is better; the first of which an entry has something counts."""
QUOTED = 50
FEW = 10
"""Prompts that may contain the better response in a table however small, such as those that ask to mend a text."""
Names = dict[str, tuple[str, ...]]
"""Columns by what they are."""


def config_columns(benchmark: Benchmark, config: str, frame: pl.DataFrame) -> Columns:
    """Which column is what in the table of a config."""
    columns = benchmark.columns_of(config)
    if benchmark.reference is None or config != benchmark.reference.config:
        return columns
    changed = {what: name for what, name in benchmark.reference.columns.items() if name in frame.columns}
    return columns.model_copy(update=changed)


def used_columns(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame) -> set[str]:
    """The columns of a table that something is read from."""
    single = columns.model_dump(exclude={"prompt", "labels", "explicit"}).values()
    earlier = benchmark.history.column if benchmark.history else None
    return {name for name in (*single, *columns.prompt, *columns.labels, earlier) if name in frame.columns}


def check_columns(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for a needed column that is not there, one that is two things, and labels of no meaning."""
    needed = _needed(benchmark, columns, where)
    chosen = {what: getattr(columns, what) for what in columns.explicit if what not in LISTS}
    for what, names in ({what: (name,) for what, name in chosen.items() if name != ROW_NUMBER} | needed).items():
        for name in names:
            if name not in frame.columns:
                mend = f"name the right one with --column {what}=COLUMN"
                if what not in Columns.model_fields:
                    mend = "it says which rows are earlier pairs of their user; add it, or describe the data in a file"
                raise DataError(f"{where} has no column `{name}`; it has {', '.join(frame.columns)}: {mend}.")
    texts = {what: names for what, names in needed.items() if what in {"prompt", *chain(*KINDS)}}
    for name, count in Counter(chain(*texts.values())).items():
        if count > 1:
            both = " and ".join(f"`{what}`" for what, names in texts.items() if name in names)
            raise DataError(
                f"{where}: the column `{name}` is given as {both}, and a column can be one thing only (a prompt that "
                "holds a response gives the answer away); give each its own column, and where one text holds prompt "
                "and response, split it first."
            )
    if "labels" in needed:
        _check_labels(benchmark.labels, columns, frame, where)


def _needed(benchmark: Benchmark, columns: Columns, where: str) -> Names:
    """The columns that there have to be, by what they are."""
    prompt = {"prompt": columns.prompt}
    if benchmark.history is None:
        return prompt if benchmark.prompts_only else prompt | _of_responses(benchmark, columns, where)
    user = {"cluster": (columns.cluster,)} if columns.cluster else {}
    which = {"earlier": (benchmark.history.column,)} if benchmark.history.column else {}
    return prompt | _of_responses(benchmark, columns, where) | user | which


def _of_responses(benchmark: Benchmark, columns: Columns, where: str) -> Names:
    """The columns that hold responses and which is better, by what they are."""
    kind = next(kind for kind in KINDS if any(getattr(columns, one) for one in kind))
    lacking = [one for one in kind if one != "rank" and not getattr(columns, one)]
    others = [one for one in columns.explicit if one in chain(*KINDS) and one not in kind]
    if lacking or others or (benchmark.multiple_responses and kind != KINDS[-1]):
        given = [f"`{one}`" for one in (*kind, *others) if getattr(columns, one)]
        given += ["`several`"] * benchmark.multiple_responses
        ways = ", or ".join(" and ".join(f"`{one}`" for one in kind) for kind in KINDS)
        raise DataError(f"{where}: {' and '.join(given)} do not say which response is better; give the columns {ways}.")
    names = {one: getattr(columns, one) or one for one in kind}
    return {one: name if isinstance(name, tuple) else (name,) for one, name in names.items()}


def _check_labels(labels: Labels, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for labels of no meaning, and for rows without any label."""
    ids = frame[columns.id].to_list() if columns.id in frame.columns else range(frame.height)
    unknown: dict[tuple[str, str], str] = {}
    bare = []
    for row_id, row in zip(ids, frame.select(columns.labels).iter_rows(), strict=True):
        given = [(name, label) for name, label in zip(columns.labels, row, strict=True) if label_key(label) is not None]
        bare += [] if given else [str(row_id)]
        for name, label in given:
            if labels.meaning(label) is None:
                unknown.setdefault((name, shortened(label)), str(row_id))
    if unknown:
        found = [f"{label} in `{name}` at id {row_id}" for (name, label), row_id in unknown.items()]
        raise DataError(
            f"{where} has labels whose meaning is not known ({first_ids(found)}); expected is {labels.expected}: say "
            "with `labels` which ones mean `first`, `second` or `tie`, such as first=A>B, or which `scale` they are on."
        )
    if bare:
        raise DataError(
            f"{where} has {len(bare):,} pairs without a label in {' or '.join(f'`{name}`' for name in columns.labels)} "
            f"(ids {first_ids(bare)}); label them, or take them out."
        )


def answered_prompts(items: pl.DataFrame) -> list[str]:
    """The ids of items whose prompt contains a best response whole and no worse one, so that it tells which is better.

    Responses of fewer than `QUOTED` characters are left out, which a prompt may contain by chance, unless they are all
    that it says.
    """
    text = pl.col("prompt").list.eval(pl.element().struct.field("content")).list.join("\n").str.strip_chars()
    best = pl.col("rank").list.eval(pl.element() == pl.element().min())
    each = items.select("id", "responses", text=text, best=best).explode("responses", "best")
    response, best = pl.col("responses").str.strip_chars(), pl.col("best")
    held = pl.col("text").str.contains(response, literal=True)
    quoted = held & ((response.str.len_chars() >= QUOTED) | ((response == pl.col("text")) & (response != "")))
    telling = (quoted & best).any() & ~(held & ~best).any() & (~best).any()
    return each.group_by("id", maintain_order=True).agg(telling=telling).filter("telling")["id"].to_list()


def check_prompts(items: pl.DataFrame, answered: Sequence[str], where: str) -> None:
    """Raise `DataError` where most of a table's prompts contain the better response, as those of transcripts do."""
    if len(answered) > max(items.height / 2, FEW):
        raise DataError(
            f"{where}: {len(answered):,} of {items.height:,} prompts contain the better response and no other (ids "
            f"{first_ids(answered)}), so they give the answer away; give prompts that end where the response begins."
        )
