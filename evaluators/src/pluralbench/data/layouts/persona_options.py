"""Options of a persona: two answers, of which a judge that knows the persona chooses one; see `persona_items`."""

import polars as pl

from pluralbench.data.layouts.layout import Layout
from pluralbench.data.layouts.shown import Replies, Row, Shown, replies_in
from pluralbench.data.persona_prompts import persona_sentences

SIDES = ("A", "B")


def _prompt(item: Row) -> list[dict[str, str]]:
    return [{"role": "user", "content": item["context"]}] if item["context"].strip() else []


def _show(item: Row, rows: pl.DataFrame, decisions: pl.DataFrame, replies: Replies, variables: str | None) -> Shown:
    row = rows.row(0, named=True)
    orders = [
        {"first": first, "verdict": row[letter]} | replies_in(row, calls, replies)
        for first, letter, calls in (("A", "choice", "calls"), ("B", "choice_swapped", "calls_swapped"))
        if row[letter] is not None
    ]
    shown = persona_sentences(item, variables or "all")
    hidden = [entry["sentence"] for entry in item["persona"] if entry["sentence"] and entry["sentence"] not in shown]
    columns = ("outcome", "truth", "verdict", "certainty", "reason")
    return Shown(
        _prompt(item),
        [{"name": side, "text": item[f"option_{side.lower()}"]} for side in SIDES],
        [{name: row[name] for name in columns if row[name] is not None} | {"orders": orders}],
        {"context": f"The judge read these variables: {variables}.", "persona": shown, "withheld": hidden},
    )


PERSONA_OPTIONS = Layout(
    unit="choices of a person",
    fields=(),
    fits=lambda benchmark, _: benchmark.persona_items,
    responses=None,
    show=_show,
    prompt=_prompt,
    commands=("judge-personas",),
)
