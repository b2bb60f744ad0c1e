"""Runs whose author changed them and kept their files in step: what the data decides is never accepted."""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import Reply, serve
from children import ended
from conftest import Tried
from forged_runs import by_row, change_config, change_record, rewritten, with_ledger, with_scores
from pluralbench import load_run
from pluralbench.results import Run
from pluralbench.results.runs import LEDGER_FILE, METRICS_FILE
from pluralbench_runs import UserError
from written_tables import write

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
FORGERIES = 300
ROWS = [
    {"id": f"q{n}", "prompt": f"Question {n}?", "chosen": f"Yes, {n}.", "rejected": f"No, {n * 7}.", "user": n // 2}
    for n in range(24)
]
Draw = random.Random
Forge = Callable[[Run, Draw], Any]


def judged(body: dict[str, Any], *_: object) -> Reply:
    return Reply(f"[[{random.Random(str(body['messages'])).choice('AB')}]]")


def honest(folder: Path) -> None:
    """Runs of each form of items and calls."""
    data = write(folder / "pairs.jsonl", ROWS)
    verbs.score(verbs.by_text, benchmark="pairs", data=data, columns=("cluster=user",), out=folder / "pairs")
    verbs.score(verbs.by_text, benchmark="chinese", data="sample", out=folder / "rankings")
    verbs.score(verbs.by_text, benchmark="pairs", data=data, items=10, out=folder / "drawn")
    with serve(judged) as server:
        verbs.judge("judge", benchmark="pairs", data=data, base_url=server.base_url, out=folder / "judge")


def dropped_rows(run: Run, draw: Draw) -> None:
    ids = run.items["id"].unique().sort().to_list()
    gone = draw.sample(ids, draw.randint(1, len(ids) - 1))
    rewritten(run, run.items.filter(~pl.col("id").is_in(gone)))


def other_column(run: Run, draw: Draw) -> None:
    names = ["cluster", "digest", "subset", *(["rank"] if "rank" in run.items.columns else [])]
    name = draw.choice(names)
    made = pl.lit(9, pl.Int64) if name == "rank" else pl.concat_str(pl.lit("x "), "id")
    rewritten(run, run.items.with_columns(made.alias(name)))


def other_metric(run: Run, draw: Draw) -> None:
    values = json.loads((run.path / METRICS_FILE).read_text(encoding="utf-8"))
    row = draw.choice([row for row in values["rows"] if row["value"] is not None])
    match draw.randrange(4):
        case 0:
            values["rows"].remove(row)
        case 1:
            values["rows"].append(row | {"metric": "brilliance"})
        case _:
            name = draw.choice([name for name in ("value", "low", "high", "n", "clusters") if row[name] is not None])
            row[name] += draw.choice([0.01, 0.3]) if name not in {"n", "clusters"} else 1
    (run.path / METRICS_FILE).write_text(json.dumps(values), encoding="utf-8")


RECORDS: list[tuple[Callable[..., Run], dict[str, Any]]] = [
    (change_config, {"benchmark": {"title": "The benchmark"}}),
    (change_config, {"benchmark": {"rule": "best of all"}}),
    (change_config, {"data": {"digest": "d" * 64}}),
    (change_config, {"data": {"license": "CC0-1.0-forged"}}),
    (change_config, {"data": {"rows": {"more": 9}}}),
    (change_config, {"data": {"answered": ["q1"]}}),
    (change_config, {"data": {"empty": ["q1"]}}),
    (change_config, {"data": {"limit": 3}}),
    (change_config, {"data": {"items_seed": 5, "items": 5}}),
    (change_config, {"data": {"revision": "a" * 40}}),
    (change_record, {"invalid_reasons": {"forged": 3}, "items_dropped": 2, "calls": 1}),
    (change_record, {"model": {"name": "better"}}),
]


def other_record(run: Run, draw: Draw) -> None:
    change, parts = draw.choice(RECORDS)
    change(run, **parts)


def other_calls(run: Run, draw: Draw) -> None:
    """Calls left out, added or exchanged; of a run without calls, a ledger of another."""
    path = run.path / LEDGER_FILE
    if not path.exists():
        shutil.copyfile(run.path.parent / "judge" / LEDGER_FILE, path)
        return
    ledger = pl.read_parquet(path)
    match draw.randrange(4):
        case 0:
            ledger = ledger[1:]
        case 1:
            ledger = pl.concat([ledger, ledger[:1].with_columns(key=pl.lit("0" * 64))])
        case 2:
            ledger = ledger.with_columns(text=pl.lit("[[A]]"))
        case _:
            ledger = ledger.with_columns(outcome=pl.lit("refused"))
    with_ledger(run, ledger)
    change_record(run, calls=ledger.height)


def only_wins(run: Run, draw: Draw) -> None:
    """Outcomes of a judge, or scores of equal responses, that are right."""
    if "verdict" in run.items.columns:
        won = {"verdict_chosen_first": "A", "verdict_rejected_first": "B", "verdict": "chosen", "outcome": "win"}
        by_row(run, lambda row: row | won)
    else:
        rewritten(run, run.items.with_columns(outcome=pl.lit("equal"), score=1.0))


def labels_as_scores(run: Run, draw: Draw) -> None:
    """What only scoring again can tell."""
    if "score_chosen" in run.items.columns:
        by_row(run, lambda row: with_scores(row, draw.choice([1.0, 2.0]), 0.0))


DECIDED: tuple[Forge, ...] = (dropped_rows, other_column, other_metric, other_record, other_calls, only_wins)
"""Forgeries that data, scores and calls give away."""


def test_forged_run(tried: Tried, tmp_path_factory: pytest.TempPathFactory) -> None:
    good = tmp_path_factory.mktemp("good")
    honest(good)
    kinds = sorted(path.name for path in good.iterdir() if path.is_dir())
    for kind in kinds:
        checked = ended(["pluralbench", "check", kind], good, patience=120)
        assert checked.status == 0, checked.said
    for number, draw, folder in tried.cases(FORGERIES):
        shutil.copytree(good, folder, dirs_exist_ok=True)
        kind, forge = draw.choice(kinds), draw.choice([*DECIDED, labels_as_scores])
        # What cannot be computed from such items is left as far as it came.
        with suppress(UserError):
            forge(load_run(folder / kind), draw)
        said = ended(["pluralbench", "check", kind], folder, patience=120)
        how = f"[{kind}: {forge.__name__}]"
        if tried.end(number, said, how) and said.status == 0 and forge in DECIDED:
            tried.failure(number, "lost", f"accepted {how}: {said.said}")
            continue
        shutil.rmtree(folder)
