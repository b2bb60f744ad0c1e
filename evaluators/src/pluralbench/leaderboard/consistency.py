"""Consistency of a run's files: items with metrics, scores with outcomes, replies with verdicts, and settings."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import polars as pl
from pluralbench_calls import InvalidAnswer, Rule, read_ledger
from pluralbench_calls.verdicts import parse_choice, parse_pick, parse_rating
from pluralbench_runs import UserError, digest, plural

from pluralbench.config import Vote
from pluralbench.data.texts import first_ids
from pluralbench.evaluation.judged_items import verdict
from pluralbench.evaluation.personas import compute_persona_metrics, parse_reply
from pluralbench.evaluation.personas import verdict as verdict_for_persona
from pluralbench.evaluation.verdicts import INVALID
from pluralbench.leaderboard.findings import Finding, error_finding
from pluralbench.leaderboard.reproduction import row_key
from pluralbench.metrics import measure
from pluralbench.metrics.references import REFERENCES
from pluralbench.results.decisions import decisions_of, item_columns
from pluralbench.results.evaluations import EvaluationRunConfig, JudgeRunConfig, PersonaJudgeRunConfig, ScoreRunConfig
from pluralbench.results.metrics_frame import PLACE
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE, Downstream, Personalized, Run

Findings = Iterator[Finding]
SAMPLING = ("temperature", "top_p", "max_tokens")
"""Settings of a judge that are also those of its requests."""

STOPPED = {"length": "length", "too long": "length", "content_filter": "content_filter"}
"""Outcome of a reply that was stopped, by finish reason and by itself."""

AnyRun = Run | Downstream | Personalized
LOADED = {"device", "dtype"}
"""Fields of a model's record that loading the model may change."""

SAME = 1e-9
"""Absolute and relative tolerance between two computations of a number."""

TEXT_METRICS = {
    *(f"{metric}{reference}" for reference in REFERENCES for metric in ("", "overall_of_", "exact_match_of_")),
    "accuracy_with_invalid_as_half",
}
"""Metrics computed from texts, which a run does not contain; they cannot be recomputed without the data."""


def check_columns(run: Run) -> Findings:
    """Check that files and columns are those of the run's verb."""
    judges = run.judged is not None
    if judges != (run.path / LEDGER_FILE).is_file():
        problem = "does not belong to a run of `score`" if not judges else "is missing; verdicts need recorded replies"
        yield error_finding("replies", f"{LEDGER_FILE} {problem}.")
    expected, actual = item_columns(run.config), run.items.schema
    for names, problem in (
        (expected.keys() - actual.keys(), "lacks the columns"),
        (actual.keys() - expected.keys(), "has the unknown columns"),
    ):
        if names:
            yield error_finding("items", f"{ITEMS_FILE} {problem} {', '.join(sorted(names))} (`{run.verb}`).")


def check_items(run: Run) -> Findings:
    """Check that each decision occurs once and that its outcome follows from its scores or verdicts."""
    items, vote = run.items, run.config.benchmark.description.vote
    duplicates = items.filter(items.select(row_key(items)).is_duplicated())
    if duplicates.height and run.config.benchmark.description.columns.compared is None:  # listed pairs may repeat
        yield error_finding("items", f"{ITEMS_FILE} has {_rows(duplicates)} more than once.")
    for what, columns, contradicts in (
        ("scores", ("score_chosen", "score_rejected"), _contradicts_scores),
        ("verdicts", ("verdict_chosen_first", "verdict_rejected_first"), partial(_contradicts_verdicts, vote)),
        ("answers", ("choice", "choice_swapped", "truth"), partial(_contradicts_verdicts, vote)),
    ):
        if {*columns} <= {*items.columns}:
            wrong = items.filter(pl.Series([contradicts(row) for row in items.iter_rows(named=True)], dtype=pl.Boolean))
            if wrong.height:
                yield error_finding(
                    "items", f"{ITEMS_FILE} has outcomes that do not follow from its {what}: {_rows(wrong)}."
                )


def _rows(items: pl.DataFrame) -> str:
    ids = items["id"].unique(maintain_order=True).to_list()
    return f"{plural(items.height, 'row')} (ids {first_ids(ids)})"


def _contradicts_scores(row: Mapping[str, Any]) -> bool:
    better, worse, outcome = row["score_chosen"], row["score_rejected"], row["outcome"]
    if outcome in {"dropped", "equal"}:
        return row["margin"] is not None
    margin = math.nan if better is None or worse is None else better - worse
    if not math.isfinite(margin):
        return bool(outcome != "invalid")
    same = row["margin"] is not None and math.isclose(row["margin"], margin, rel_tol=SAME, abs_tol=SAME)
    return not same or outcome != ("win" if margin > 0 else "loss" if margin < 0 else "tie")


def _contradicts_verdicts(vote: Vote, row: Mapping[str, Any]) -> bool:
    if row["outcome"] == "equal":
        return row["verdict"] is not None
    expected = verdict_for_persona(row) if "choice" in row else verdict(row, vote)
    return (row["verdict"], row["outcome"]) != expected


def check_metrics(run: AnyRun, again: pl.DataFrame | None = None, source: str = ITEMS_FILE) -> Findings:
    """Check the metrics and their intervals against the items.

    Args:
        run: Run to check.
        again: Metrics recomputed from the data. Default: recompute from the items of a run on a benchmark, without the
            metrics of texts.
        source: Where the metrics follow from.
    """
    unchecked = set() if again is not None else TEXT_METRICS
    config = run.config
    try:
        if again is None and isinstance(config, PersonaJudgeRunConfig):
            again = compute_persona_metrics(config, run.items)
        elif again is None:
            assert isinstance(config, EvaluationRunConfig)  # noqa: S101 - callers compute those of other runs
            again = measure(config.benchmark.description, decisions_of(run.items), responses=run.items)
    except UserError as error:
        yield error_finding("metrics", f"The metrics cannot be computed from {source}: {error}")
        return
    both = run.metrics.join(again, on=PLACE, how="full", suffix="_again", nulls_equal=True, coalesce=False)
    recorded, computed = pl.col("group").is_not_null(), pl.col("group_again").is_not_null()
    same_method = pl.col("method").eq_missing(pl.col("method_again"))
    differs = ~pl.all_horizontal(*map(_equal, ("value", "low", "high", "n", "clusters")), same_method)
    unknown = recorded & ~computed & ~pl.col("metric").is_in(unchecked)
    for wrong, what in (
        (both.filter(recorded & computed & differs), "numbers or intervals that do not follow from {}, such as"),
        (both.filter(unknown), "numbers without a source in {}, such as"),
    ):
        if wrong.height:
            row = wrong.row(0, named=True)
            numbers = f": {_number(row, '')} instead of {_number(row, '_again')}" if row["group_again"] else ""
            yield error_finding(
                "metrics", f"{METRICS_FILE} has {wrong.height:,} {what.format(source)} {_place(row)}{numbers}."
            )
    missing = both.filter(computed & ~recorded)
    if missing.height:
        row = {name: missing[f"{name}_again"][0] for name in PLACE}
        yield error_finding("metrics", f"{METRICS_FILE} lacks {missing.height:,} numbers, such as {_place(row)}.")


def _equal(name: str) -> pl.Expr:
    one, other = pl.col(name).cast(pl.Float64), pl.col(f"{name}_again").cast(pl.Float64)
    near = (one - other).abs() <= SAME * pl.max_horizontal(1.0, one.abs())
    return (one.is_null() & other.is_null()) | near.fill_null(value=False)


def _place(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[name]) for name in PLACE if row[name] is not None)


def _number(row: Mapping[str, Any], end: str) -> str:
    value, low, high, n = (row[f"{name}{end}"] for name in ("value", "low", "high", "n"))
    over = f" over {n}" if n else ""
    return "none" if value is None else f"{value:.6g}{over}" + ("" if low is None else f" [{low:.6g}, {high:.6g}]")


def check_record(run: Run) -> Findings:
    """Check that `run.json` agrees with the items, and that the configured model is the one that answered."""
    config, result, items = run.config, run.result, run.items
    counts = dict(items.group_by("config").agg(pl.col("id").n_unique()).sort("config").iter_rows())
    rows = config.data.rows
    # The persona judge may read only some of the items.
    wrong = any(counts[name] > rows.get(name, 0) for name in counts)
    if wrong or (run.verb != "judge-personas" and counts != rows):
        yield error_finding(
            "record",
            f"{RUN_FILE} records {plural(sum(rows.values()), 'item')}, but {ITEMS_FILE} has {sum(counts.values()):,}.",
        )
    in_shards = sum(shard.items for shard in result.shards)
    if result.shards and in_shards != sum(counts.values()):
        yield error_finding(
            "record",
            f"{RUN_FILE} records {plural(in_shards, 'item')} in shards, but {ITEMS_FILE} has {sum(counts.values()):,}.",
        )
    if run.verb != "judge-personas" and None in {config.prompt.profile, config.prompt.profile_size}:
        yield error_finding("settings", f"{RUN_FILE} does not record the user context in the prompts.")
    pairs: dict[str, tuple[Any, Any]] = {
        "benchmark": (config.data.benchmark_digest, digest(config.benchmark.description.model_dump(mode="json")))
    }
    if isinstance(config, ScoreRunConfig):
        before, after = config.model, result.model
        # Loading adds fields; it changes none but those of the machine.
        known = {
            name
            for name, value in before
            if value is not None or name in {"name", "kind", "digest", "reference", "label"}
        }
        pairs |= {name: (getattr(before, name), getattr(after, name)) for name in sorted(known - LOADED - {"settings"})}
        kept = {name: value for name, value in after.settings.items() if name in before.settings or name != "served"}
        pairs["settings"] = (before.settings, kept)
    elif isinstance(config, JudgeRunConfig | PersonaJudgeRunConfig):
        pairs |= {"name": (config.model.model, result.model.name)}
        pairs |= {"provider": (config.model.provider, result.model.provider)}
        pairs |= {name: (getattr(config.judging, name), getattr(config.model, name)) for name in SAMPLING}
    for name, (configured, actual) in pairs.items():
        if configured != actual and not (name == "benchmark" and configured is None):
            yield error_finding(
                "settings", f"{RUN_FILE} records two different values of the {name}: {configured} and {actual}."
            )


def check_replies(run: Run) -> Findings:
    """Check that each verdict or rating of a judge follows from its recorded reply."""
    if run.judged is None or not (run.path / LEDGER_FILE).is_file():
        return
    try:
        ledger = read_ledger(run.path / LEDGER_FILE)
    except UserError as error:
        yield error_finding("replies", str(error))
        return
    if ledger.height != run.judged.calls:
        yield error_finding(
            "replies",
            f"{RUN_FILE} records {run.judged.calls:,} calls, but {LEDGER_FILE} has {ledger.height:,}.",
        )
    unlike = ledger.filter(_stopped(pl.col("finish_reason")).ne_missing(_stopped(pl.col("outcome")))).filter(
        ~pl.col("outcome").is_in(["error", "refusal"])
    )
    if unlike.height:
        yield error_finding(
            "replies",
            f"{LEDGER_FILE} has {unlike.height:,} replies whose outcome is not that of their finish reason "
            f"({first_ids(unlike['finish_reason'].unique().sort().to_list())}).",
        )
    replies = {key: (outcome, text) for key, outcome, text in ledger.select("key", "outcome", "text").iter_rows()}
    missing: list[str] = []
    different: list[str] = []
    for row in run.items.with_columns(responses=pl.len().over("config", "id")).iter_rows(named=True):
        for calls, value, parse in _verdict_calls(run, row):
            if (value is not None and not calls) or any(key not in replies for key in calls):
                missing.append(row["id"])
            elif calls and value != _parse_reply(parse, *replies[calls[-1]]):
                different.append(row["id"])
    if missing:
        yield error_finding(
            "replies", f"{LEDGER_FILE} lacks the calls of {len(missing):,} verdicts (ids {first_ids(missing)})."
        )
    if different:
        yield error_finding(
            "replies", f"{len(different):,} verdicts do not follow from their replies (ids {first_ids(different)})."
        )


def _stopped(name: pl.Expr) -> pl.Expr:
    """Return why replies were stopped, from finish reason or outcome; null for replies that were not."""
    return name.replace_strict(STOPPED, default=None)


def _verdict_calls(run: Run, row: Mapping[str, Any]) -> Iterator[tuple[list[str], Any, Callable[[str], Any]]]:
    """Yield the calls behind each verdict or rating of a row, its value, and its parser."""
    setting, rule = run.config.judge_setting("setting"), run.config.judge_setting("verdict_parsing")
    if setting is not None:
        for end in ("", "_swapped"):
            calls = list(row.get(f"calls{end}") or ())
            yield calls, row[f"choice{end}"], lambda text: parse_reply(text, setting).letter
    elif run.config.judge_setting("protocol") != "pairwise":
        for end in ("",) if "calls" in row else ("_chosen", "_rejected"):
            score = row[f"score{end}"]
            rated = INVALID if score is None or math.isnan(score) else score
            yield list(row.get(f"calls{end}") or ()), rated, lambda text: _score(row, text, rule)
    else:
        for side in ("chosen", "rejected"):
            yield (
                list(row.get(f"calls_{side}_first") or ()),
                row[f"verdict_{side}_first"],
                lambda text: parse_choice(text, rule),
            )


def _score(row: Mapping[str, Any], reply: str, rule: Rule) -> float:
    """Return the score of a response from a judge's reply: its rating, or whether it was picked."""
    if row.get("position") is None:
        return parse_rating(reply, rule)
    return float(parse_pick(reply, row["responses"], rule) == row["position"])


def _parse_reply(parse: Callable[[str], Any], outcome: str, text: str | None) -> Any:
    """Parse a reply; one that was refused, cut off or empty is invalid."""
    if outcome != "answer":
        return INVALID
    try:
        return parse(text or "")
    except InvalidAnswer:
        return INVALID
