"""`submit`: a valid run is accepted, what is unusual is said, and no change to a run's files goes unseen."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import Reply, serve
from made_personalize import made_items, made_personalized
from pluralbench import Group, Run, read_run
from pluralbench.commands.app import app
from pluralbench.leaderboard.findings import Finding
from pluralbench.leaderboard.submission import check_data, check_submission
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE, SETTINGS_FILE
from typer.testing import CliRunner
from written_tables import write

Rows = list[dict[str, Any]]
Pairs = Callable[..., Rows]


def by_length(groups: Sequence[Group]) -> list[list[float]]:
    return [[float(len(response)) for response in group.responses] for group in groups]


@pytest.fixture
def data(pairs: Pairs, tmp_path: Path) -> Path:
    rows = pairs(12)
    for number, row in enumerate(rows):
        row["chosen"] += " and more of it" * (number % 3 > 0)
    return write(tmp_path / "pairs.jsonl", rows)


@pytest.fixture
def scored(data: Path, tmp_path: Path) -> Run:
    return verbs.score(by_length, benchmark="pairs", data=data, out=tmp_path / "scored")


def judged(data: Path, out: Path, **options: Any) -> Run:
    with serve(lambda *_: Reply("Because.\n[[A]]")) as server:
        return verbs.judge("judge-1", benchmark="pairs", data=data, base_url=server.base_url, out=out, **options)


def said(findings: Sequence[Finding], level: str = "refused") -> str:
    return " ".join(found.text for found in findings if found.level == level)


def about(findings: Sequence[Finding]) -> set[str]:
    return {found.about for found in findings}


def change(path: Path, make: Callable[[dict[str, Any]], object]) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    make(values)
    path.write_text(json.dumps(values), encoding="utf-8")


def change_items(run: Run, **columns: Any) -> None:
    run.items.with_columns(**columns).write_parquet(run.path / ITEMS_FILE)


def test_a_run_as_it_was_made_is_valid(scored: Run, data: Path) -> None:
    found = check_submission(scored)
    assert said(found) == ""
    # A function, and a checkout that may have changes.
    assert about(found) <= {"model", "software"}
    assert "The model is a function, which others do not have." in said(found, "unusual")
    assert check_data(scored) == []


def test_a_changed_number_is_seen(scored: Run) -> None:
    change(scored.path / METRICS_FILE, lambda values: values["rows"][0].update(value=0.99))
    found = check_submission(read_run(scored.path))
    assert "metrics.json has 1 numbers that items.parquet does not give, such as overall overall: 0.99" in said(found)


def test_a_number_of_ones_own_is_seen(scored: Run) -> None:
    own = {"group": "overall", "metric": "brilliance", "value": 1.0}
    change(scored.path / METRICS_FILE, lambda values: values["rows"].append(own))
    assert "1 numbers that nothing in items.parquet gives, such as overall brilliance" in said(
        check_submission(read_run(scored.path))
    )


def test_intervals_of_another_version_are_unusual_and_no_more(scored: Run) -> None:
    change(scored.path / METRICS_FILE, lambda values: values["rows"][0].update(low=0.01))
    found = check_submission(read_run(scored.path))
    assert said(found) == ""
    assert "metrics.json has 1 intervals that this version of pluralbench makes otherwise." in said(found, "unusual")


def test_a_changed_outcome_is_seen(scored: Run) -> None:
    change_items(scored, outcome=pl.lit("win"))
    found = said(check_submission(read_run(scored.path)))
    assert "items.parquet has outcomes that its scores do not give: 8 rows (ids q0, q1, q2, …)." in found
    assert "metrics.json has" in found


def test_a_row_twice_is_seen(scored: Run) -> None:
    pl.concat([scored.items, scored.items[:1]]).write_parquet(scored.path / ITEMS_FILE)
    assert "items.parquet has 2 rows (ids q0) more than once." in said(check_submission(read_run(scored.path)))


def test_items_that_are_left_out_are_seen(scored: Run) -> None:
    scored.items[:10].write_parquet(scored.path / ITEMS_FILE)
    assert "run.json tells of 12 items, and items.parquet has 10." in said(check_submission(read_run(scored.path)))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda values: values["model"].update(name="better"), "model.name"),
        (lambda values: values["data"].update(digest="d" * 64), "data.digest"),
        (lambda values: values["data"].update(limit=5), "of the first 5 items"),
        (lambda values: values["prompt"].update(profile="raw"), "prompt.profile none, and run.json says raw."),
    ],
)
def test_a_record_that_says_other_than_the_settings_is_seen(
    scored: Run, make: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    change(scored.path / RUN_FILE, make)
    assert sentence in " ".join(found.text for found in check_submission(read_run(scored.path)))


def test_settings_that_are_gone_or_damaged_are_seen(scored: Run) -> None:
    (scored.path / SETTINGS_FILE).write_text("[model", encoding="utf-8")
    assert "settings" in {found.about for found in check_submission(scored) if found.level == "refused"}


def test_other_data_is_seen(scored: Run, pairs: Pairs, data: Path) -> None:
    write(data, pairs(12))
    assert "does not have the texts of 8 items (ids q1, q2, q4, …)." in said(check_data(scored))
    data.unlink()
    found = check_data(scored)
    assert [one.level for one in found] == ["unusual"]
    assert found[0].text.startswith("The data was not checked. ")


def test_more_rows_than_were_scored_are_seen(scored: Run, pairs: Pairs, data: Path, tmp_path: Path) -> None:
    lines = data.read_text(encoding="utf-8") + json.dumps(pairs(13)[12]) + "\n"
    longer = tmp_path / "longer.jsonl"
    longer.write_text(lines, encoding="utf-8")
    assert "has other content than what was scored" in said(check_data(scored, str(longer)))


@pytest.mark.parametrize("how", [{}, {"orders": "one"}, {"pointwise": True}])
def test_a_judges_run_as_it_was_made_is_valid(data: Path, tmp_path: Path, how: dict[str, Any]) -> None:
    run = judged(data, tmp_path / "judged", **how) if "pointwise" not in how else rated(data, tmp_path / "judged")
    found = check_submission(run)
    assert said(found) == ""
    wanted = {"orders": "orders is one; the default is both.", "pointwise": "pointwise is yes; the default is no."}
    for name in how:
        assert wanted[name] in said(found, "unusual")


def rated(data: Path, out: Path) -> Run:
    with serve(lambda *_: Reply("[[7]]")) as server:
        return verbs.judge("judge-1", benchmark="pairs", data=data, base_url=server.base_url, out=out, pointwise=True)


def test_a_judge_that_always_takes_the_first_is_unusual(data: Path, tmp_path: Path) -> None:
    found = said(check_submission(judged(data, tmp_path / "judged")), "unusual")
    assert "The judge chose the response that is shown first in 100% of its valid verdicts." in found
    assert "Every decision is a tie." in found


def test_verdicts_that_the_replies_do_not_say_are_seen(data: Path, tmp_path: Path) -> None:
    run = judged(data, tmp_path / "judged", orders="one")
    swapped = pl.lit("B")
    change_items(
        run,
        verdict_chosen_first=pl.when(pl.col("verdict_chosen_first").is_not_null()).then(swapped),
        verdict_rejected_first=pl.when(pl.col("verdict_rejected_first").is_not_null()).then(swapped),
    )
    assert "12 verdicts are not what their replies say (ids q0, q1, q2, …)." in said(
        check_submission(read_run(run.path))
    )
    (run.path / LEDGER_FILE).unlink()
    assert "There is no ledger.parquet, so no verdict can be traced to a reply." in said(
        check_submission(read_run(run.path))
    )


def test_verdicts_without_their_calls_are_seen(data: Path, tmp_path: Path) -> None:
    run = judged(data, tmp_path / "judged", orders="one")
    change_items(run, calls_chosen_first=pl.lit([], dtype=pl.List(pl.String)))
    assert "ledger.parquet lacks the calls of" in said(check_submission(read_run(run.path)))
    names = [name for name in run.items.columns if name.startswith("calls")]
    run.items.drop(names).write_parquet(run.path / ITEMS_FILE)
    found = check_submission(read_run(run.path))
    assert said(found) == ""
    assert "does not name the calls behind its verdicts" in said(found, "unusual")


def test_a_persona_judges_run_is_valid_and_a_changed_answer_is_seen(tmp_path: Path) -> None:
    with serve(lambda *_: Reply("[[A]] [[70]]")) as server:
        run = verbs.judge_personas("j", data="sample", base_url=server.base_url, samples=3, out=tmp_path / "personas")
    found = check_submission(run)
    assert said(found) == ""
    assert "It is of at most 3 items of each task." in said(found, "unusual")
    assert check_data(run) == []
    change_items(run, said=pl.lit("B"))
    found = check_submission(read_run(run.path))
    assert "outcomes that its answers do not give" in said(found)
    assert "verdicts are not what their replies say" in said(found)


def test_what_is_unusual_is_said(data: Path, tmp_path: Path) -> None:
    run = verbs.score(lambda groups: [[1.0] * len(g.responses) for g in groups], benchmark="pairs", data=data, limit=5,
                      out=tmp_path / "same")  # fmt: skip
    found = said(check_submission(run), "unusual")
    assert "It is of the first 5 items of each config." in found
    assert "All scores are the same, 1." in found
    assert "Every decision is a tie." in found
    never = verbs.score(
        lambda groups: [[float("nan")] * len(g.responses) for g in groups], benchmark="pairs", data=data,
        out=tmp_path / "nan",
    )  # fmt: skip
    assert "12 of 12 decisions have no valid score or verdict (ids q0, q1, q2, …)." in said(
        check_submission(never), "unusual"
    )


def test_a_run_on_other_data_than_the_others_is_unusual(scored: Run, data: Path, pairs: Pairs, tmp_path: Path) -> None:
    other = verbs.score(
        by_length, benchmark="pairs", data=write(tmp_path / "o.jsonl", pairs(5)), out=tmp_path / "other"
    )
    found = said(check_submission(other, [scored, scored, other]), "unusual")
    assert f"Its data ({tmp_path / 'o.jsonl'}) is not that of 2 of the 3 runs of this benchmark." in found
    assert "is not that of" not in said(check_submission(scored, [scored, scored, other]), "unusual")


def test_the_command_tells_and_its_status_says_whether_a_run_is_accepted(scored: Run, tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["submit", str(scored.path)])
    assert done.exit_code == 0
    assert "valid, with" in done.output
    assert "unusual: The model is a function" in done.output
    change(scored.path / METRICS_FILE, lambda values: values["rows"][0].update(value=0.99))
    done = runner.invoke(app, ["submit", str(scored.path), "--json"])
    assert done.exit_code == 1
    (told,) = json.loads(done.output)
    assert told["run"] == str(scored.path)
    assert told["accepted"] is False
    assert told["findings"][0]["level"] == "refused"
    made_personalized(tmp_path / "personal", made_items(methods=["bt"], seeds=1, users=6))
    other = runner.invoke(app, ["submit", str(tmp_path / "personal")])
    assert str(other.exception).endswith("runs of benchmarks, which `pluralbench score` and `judge` make.")
    missing = runner.invoke(app, ["submit", str(tmp_path / "none")])
    assert str(missing.exception) == f"There is no directory {tmp_path / 'none'}."
