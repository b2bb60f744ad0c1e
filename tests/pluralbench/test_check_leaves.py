"""`check`: each value of a run's files, changed alone or in step, is seen, or is listed with why no file shows it."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import Reply, serve
from forged_runs import with_ledger
from pluralbench.leaderboard.checks import check_submission
from pluralbench.leaderboard.findings import Finding
from pluralbench.leaderboard.reproduction import DataCache
from pluralbench.results import Run
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE, load_run
from pluralbench_runs import UserError, digest
from written_tables import write

ROWS = [
    {"id": f"q{n}", "prompt": f"Question {n}?", "chosen": f"Yes, {n}.", "rejected": f"No, {n * 7}.", "user": n // 2}
    for n in range(8)
]
UNSEEN = {
    r"provenance\..*": "time, command and software of a machine that is not here",
    r"result\.cost\.seconds": "the clock of that machine",
    r"config\.connection\.(?!base_url|price).*": "how calls were sent; no number depends on it",
    r"config\.model\.structured_output": "has no effect on a judge that replies in words",
    r"config\.judging\.verdict_parsing": "a column of a leaderboard; these replies read the same by both rules",
    r"config\.model\.(device|dtype)": "what was asked of the machine; what it gave is in the result",
    r"result\.model\.device": "the machine",
    r"result\.model\.(commit|provider|reference_.*|architecture|chat_template_digest|parameters)": "loading shows it",
    r"config\.scoring\.token_budget": "how the machine made batches",
    r"result\.(items_rendered_identically|inputs_.*_bos)": "the model's tokenizer shows it",
    r"result\.items_resumed": "an interruption of that machine",
    r"ledger\.(text|.*_tokens)": "what a server replied, and counted; asking again shows it",
    r"ledger\.(label|recorded_at|adapted)": "names and times of calls, which are no part of their keys",
    r"items\.(tokens_.*)": "the model's tokenizer shows it",
}
"""Values that neither files nor data show, with the reason. What `--rescore` compares is among them."""

KINDS = ("score", "judge", "personas")


def judged(body: dict[str, Any], *_: object) -> Reply:
    return Reply("[[A]] [[70]]" if "ertain" in str(body) else "[[A]]")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("honest")
    data = write(folder / "pairs.jsonl", ROWS)
    runs: dict[str, Run] = {
        "score": verbs.score(verbs.by_text, benchmark="pairs", data=data, columns=("cluster=user",), out=folder / "s")
    }
    with serve(judged) as server:
        asked: dict[str, Any] = {"base_url": server.base_url}
        runs["judge"] = verbs.judge("judge-1", benchmark="pairs", data=data, out=folder / "j", **asked)
        runs["personas"] = verbs.judge_personas("j", data="sample", limit=2, out=folder / "q", **asked)
    return runs


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value that has no values below it."""
    if isinstance(value, dict | list) and value:
        for name, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(below, (*place, name))
    else:
        yield place


def others(value: Any) -> list[Any]:
    """Other values that may fit in the place of one."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1, value + 0.25]
        case str():
            words = ["other", "x" * len(value), "drop", "strict", "one", "exact", "brief", "raw", "person", "standard"]
            return [*words, "generative", "effective", "items", "configs", "max_completion_tokens", "max_tokens", "all"]
        case None:
            return [1, "x", ["x"], {"x": 1}, True, {"input": 1.0, "output": 1.0}]
        case list():
            return [["x"], [1]]
        case _:
            return [{"x": 1}, {"x": "y"}]


def changed(values: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The values with another one at a place, and the digest of the benchmark in step."""
    again = json.loads(json.dumps(values))
    part = again
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    data = again["config"]["data"]
    if "description" in place and data["benchmark_digest"] is not None:
        data["benchmark_digest"] = digest(again["config"]["benchmark"]["description"])
    return again


def named(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place))


def listed(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in UNSEEN)


class Tried:
    """A copy of an honest run, and what its check finds in any case."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.path, self.cache = folder / "forged", DataCache()
        shutil.copytree(run.path, self.path)
        self.before = self.findings()

    def findings(self) -> set[Finding]:
        checked = check_submission(load_run(self.path, EvaluationRunConfig), cache=self.cache)
        return {*checked.findings}

    def seen(self) -> bool:
        """Whether the run as it is now is not read, refused, or has a finding more."""
        try:
            return bool(self.findings() - self.before)
        except UserError:
            return True


def silent_records(tried: Tried) -> Iterator[str]:
    """Yield the names of the leaves of `run.json` of which a change that can be loaded is not seen."""
    text = (tried.path / RUN_FILE).read_text(encoding="utf-8")
    values = json.loads(text)
    original = load_run(tried.path, EvaluationRunConfig)
    for place in leaves(values):
        if listed(named(place)):
            continue
        for value in others(_at(values, place)):
            (tried.path / RUN_FILE).write_text(json.dumps(changed(values, place, value)), encoding="utf-8")
            try:
                run = load_run(tried.path, EvaluationRunConfig)
            except UserError:
                continue
            if (run.config, run.result, run.provenance) == (original.config, original.result, original.provenance):
                continue
            if not tried.seen():
                yield f"{named(place)}: {value}"
            break  # the first change that loads is enough
    (tried.path / RUN_FILE).write_text(text, encoding="utf-8")


def _at(values: Any, place: tuple[Any, ...]) -> Any:
    for name in place:
        values = values[name]
    return values


def other_column(column: pl.Series) -> pl.Series:
    """Other values of the same type in each row."""
    if column.dtype == pl.String:
        return pl.Series(column.name, ["length"] * len(column))  # also the finish reason of a reply that was stopped
    if column.dtype == pl.Boolean:
        return ~column.fill_null(value=False)
    if isinstance(column.dtype, pl.List):
        return pl.Series(column.name, [[]] * len(column), dtype=column.dtype)
    return column.fill_null(0) + 1


def silent_columns(tried: Tried, file: str, write_frame: Callable[[pl.DataFrame], None]) -> Iterator[str]:
    """Yield the names of the columns of a frame of which a change is not seen."""
    frame = pl.read_parquet(tried.path / file)
    for column in frame:
        name = f"{Path(file).stem}.{column.name}"
        if not listed(name) and column.dtype != pl.Null:
            write_frame(frame.with_columns(other_column(column)))
            if not tried.seen():
                yield name
    write_frame(frame)


def silent_metrics(tried: Tried) -> Iterator[str]:
    path = tried.path / METRICS_FILE
    text = path.read_text(encoding="utf-8")
    values = json.loads(text)
    # One row of each shape is enough: all rows are compared at once.
    row = next(row for row in values["rows"] if row["low"] is not None)
    for name, value in list(row.items()):
        row[name] = others(value)[0]
        path.write_text(json.dumps(values), encoding="utf-8")
        row[name] = value
        if not tried.seen():
            yield f"metrics.{name}"
    path.write_text(text, encoding="utf-8")


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_each_value_of_a_run_is_seen_when_changed_or_listed(made: dict[str, Run], tmp_path: Path, kind: str) -> None:
    tried = Tried(made[kind], tmp_path)
    silent = [*silent_records(tried), *silent_metrics(tried)]
    silent += silent_columns(tried, ITEMS_FILE, lambda frame: frame.write_parquet(tried.path / ITEMS_FILE))
    if made[kind].judged is not None:
        honest = load_run(tried.path, EvaluationRunConfig)
        silent += silent_columns(tried, LEDGER_FILE, lambda frame: with_ledger(honest, frame))
    assert silent == []
