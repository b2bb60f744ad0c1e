"""`check` on directories of best-of-n and personalize: made again from calls and rewards, or their numbers alone."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from chat_server import serve
from downstream_runs import MODELS, World, sampled
from forged_runs import with_ledger
from made_personalize import made_items, made_personalized
from pluralbench.leaderboard.downstream import check_downstream, check_personalized
from pluralbench.leaderboard.findings import CheckResult
from pluralbench.leaderboard.rescoring import Rescoring
from pluralbench.results import Downstream
from pluralbench.results.runs import METRICS_FILE, RUN_FILE, load_run
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
Row = dict[str, Any]
TURNS = [{"id": f"t{n}", "turns": [f"First {n}?", f"Then {n}?"]} for n in range(3)]
KINDS: dict[str, Row] = {
    "rubric": {"data": "sample", "limit": 2},
    "selected": {"data": "sample", "limit": 2, "judged": "selected"},
    "win": {"data": "sample", "limit": 1, "measure": "win"},
    "turns": {
        "data": "turns.jsonl",
        "benchmark": "prompts",
        "columns": ("prompt=turns",),
        "profile": "none",
        "measure": "rating",
    },
    "words": {"data": "sample", "limit": 1, "judge": "rubric-overlap"},
    "unjudged": {"data": "sample", "limit": 1, "judge": None},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Downstream]:
    folder = tmp_path_factory.mktemp("honest")
    write(folder / "turns.jsonl", TURNS)
    with serve(World()) as server:
        runs = {}
        for kind, options in KINDS.items():
            given = dict(options)
            data = given.pop("data")
            place = Path(data) if data == "sample" else folder / data
            runs[kind] = sampled(server, place, folder / kind, MODELS, **given)
        return runs


def told(checked: CheckResult) -> str:
    return " ".join(found.text for found in checked.findings)


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_run_is_made_again_from_its_calls_and_rewards(made: dict[str, Downstream], kind: str) -> None:
    checked = check_downstream(made[kind], rescoring=Rescoring(2, seed=0))
    assert checked.state == "checked"
    chosen = {"sample", "limit"} if KINDS[kind]["data"] == "sample" else set()
    assert {found.about for found in checked.findings} - {"software"} == chosen | {"rescored"}
    assert "No item of a run of best-of-n is scored again." in told(checked)


def frame(name: str, **columns: pl.Expr) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        path = run / f"{name}.parquet"
        pl.read_parquet(path).with_columns(**columns).write_parquet(path)

    return change


def fewer(name: str) -> Callable[[Path], None]:
    return lambda run: pl.read_parquet(run / f"{name}.parquet")[1:].write_parquet(run / f"{name}.parquet")


def record(*place: str, value: Any) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        values = json.loads((run / RUN_FILE).read_text(encoding="utf-8"))
        part = values
        for name in place[:-1]:
            part = part[name]
        part[place[-1]] = value
        (run / RUN_FILE).write_text(json.dumps(values), encoding="utf-8")

    return change


def numbers(run: Path) -> None:
    values = json.loads((run / METRICS_FILE).read_text(encoding="utf-8"))
    values["rows"][0]["value"] = 1.99
    (run / METRICS_FILE).write_text(json.dumps(values), encoding="utf-8")


def replies(run: Path) -> None:
    ledger = pl.read_parquet(run / "ledger.parquet")
    judged = pl.col("label").str.starts_with("the ")
    with_ledger(load_run(run), ledger.with_columns(text=pl.when(judged).then(pl.lit("[2, 2, 2]")).otherwise("text")))


def more_calls(run: Path) -> None:
    ledger = pl.read_parquet(run / "ledger.parquet")
    with_ledger(load_run(run), pl.concat([ledger, ledger[:1].with_columns(key=pl.lit("0" * 64))]))


FORGERIES: list[tuple[Callable[[Path], None], str]] = [
    (frame("candidates", text=pl.lit("The best.")), "candidates.parquet has 30 rows that its calls"),
    (fewer("candidates"), "candidates.parquet has other rows or columns"),
    (frame("candidates", cluster=pl.lit("c")), "candidates.parquet has 30 rows that its calls"),
    (frame("rewards", reward=-pl.col("reward")), "selected.parquet has"),
    (fewer("rewards"), "rewards.parquet does not have the rewards of all candidates of id"),
    (frame("selected", sample=pl.lit(0, pl.Int64)), "selected.parquet has"),
    (frame("outcomes", value=pl.lit(2.0)), "outcomes.parquet has"),
    (replies, "ledger.parquet lacks calls that the run needs."),
    (more_calls, "ledger.parquet has 1 calls that the run does not need."),
    (lambda run: (run / "rewards.parquet").unlink(), "rewards.parquet"),
    (lambda run: (run / "ledger.parquet").unlink(), "ledger.parquet"),
    (numbers, "metrics.json has 1 numbers or intervals that do not follow from its calls and rewards"),
    (record("config", "policy", "model", value="better"), "ledger.parquet lacks calls that the run needs."),
    (record("config", "judge", "model", value="better"), "ledger.parquet lacks calls that the run needs."),
    (record("config", "sampling", "n", value=4), "rewards.parquet does not have the rewards of all"),
    (record("config", "benchmark", "title", value="The best"), "records the title The best, but its data gives"),
    (record("config", "data", "rows", value={"x": 1}), "records another `rows` of the data"),
    (record("result", "sampling", "completion_tokens", value=1), "another `sampling` than follows from its calls."),
    (record("result", "outcome", "invalid", value=1), "another `outcome` than follows from its calls."),
    (record("result", "rewards", "length", "identical", value=3), "another `rewards.length` than follows"),
    (record("result", "rewards", value={}), "records other reward models in its result than in its config."),
]


@pytest.mark.parametrize(("forge", "sentence"), FORGERIES)
def test_a_forged_run_is_refused(
    made: dict[str, Downstream], tmp_path: Path, forge: Callable[[Path], None], sentence: str
) -> None:
    copied = tmp_path / "forged"
    shutil.copytree(made["rubric"].path, copied)
    forge(copied)
    checked = check_downstream(load_run(copied))
    assert checked.state == "refused", checked
    assert sentence in told(checked)


def test_data_that_was_not_read_is_a_state_of_its_own(run: Command, made: dict[str, Downstream]) -> None:
    path = made["rubric"].path
    assert run("check", path)[0] == 0
    status, out, _ = run("check", path, "--data", "nowhere.jsonl")
    assert (status, "not checked against its data" in " ".join(out.split())) == (1, True)
    status, out, _ = run("check", path, "--json")
    (row,) = json.loads(out)
    assert (status, row["state"], row["accepted"], row["items"]) == (0, "checked", True, None)


def test_the_numbers_of_personalize_follow_from_its_decisions(tmp_path: Path) -> None:
    items = made_items(methods=["bt"], seeds=1, users=6)
    honest = made_personalized(tmp_path / "honest", items)
    assert check_personalized(honest).state == "consistent"
    assert "Only the numbers of a run of personalize are computed again" in told(check_personalized(honest))
    wins = items.with_columns(correct=pl.lit(value=True))
    assert "decisions contradict their margins" in told(check_personalized(made_personalized(tmp_path / "wins", wins)))
    numbers(honest.path)
    checked = check_personalized(load_run(honest.path))
    assert (checked.state, "do not follow from items.parquet" in told(checked)) == ("refused", True)
