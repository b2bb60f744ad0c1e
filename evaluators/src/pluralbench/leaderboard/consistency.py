"""Whether the files of a run say the same: items and metrics, scores and outcomes, replies and verdicts, settings."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl
from pluralbench_calls import InvalidAnswer, read_ledger
from pluralbench_calls.verdicts import parse_choice, parse_rating
from pluralbench_runs import UserError, digest

from pluralbench.data.texts import first_ids
from pluralbench.evaluation.judge import verdict
from pluralbench.evaluation.personas import compute_persona_metrics, parse_reply
from pluralbench.evaluation.personas import verdict as verdict_for_persona
from pluralbench.evaluation.verdicts import INVALID
from pluralbench.leaderboard.findings import Finding, error_finding
from pluralbench.leaderboard.reproduction import row_key
from pluralbench.metrics import measure
from pluralbench.metrics.references import REFERENCES
from pluralbench.results.decisions import decisions_of, item_columns
from pluralbench.results.evaluations import JudgeRunConfig, PersonaJudgeRunConfig, ScoreRunConfig
from pluralbench.results.metrics_frame import PLACE
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE, Run

Findings = Iterator[Finding]
SAME = 1e-9
"""How far apart two computations of one number may lie, absolutely and relatively."""

FROM_TEXTS = {
    *(f"{metric}{reference}" for reference in REFERENCES for metric in ("", "overall_of_", "exact_match_of_")),
    "accuracy_with_invalid_as_half",
}
"""Metrics that are of texts, which a run does not keep: without its data they are not made again."""


def check_columns(run: Run) -> Findings:
    """Whether the files, the parts of the record and the columns are those that the run's verb makes."""
    judges = run.judged is not None
    if judges != (run.path / LEDGER_FILE).is_file():
        said = "is no file of a run of `score`" if not judges else "is missing, so no verdict can be traced to a reply"
        yield error_finding("replies", f"{LEDGER_FILE} {said}.")
    wanted, found = item_columns(run.config), run.items.schema
    for names, said in (
        (wanted.keys() - found.keys(), "lacks"),
        (found.keys() - wanted.keys(), "has, and other than this version makes,"),
    ):
        if names:
            yield error_finding("items", f"{ITEMS_FILE} {said} the columns {', '.join(sorted(names))} of `{run.verb}`.")


def check_items(run: Run) -> Findings:
    """Whether each decision is there once, and its outcome is what its scores or verdicts say."""
    items = run.items
    twice = items.filter(items.select(row_key(items)).is_duplicated())
    if twice.height:
        yield error_finding("items", f"{ITEMS_FILE} has {_rows(twice)} more than once.")
    for what, columns, wrong in (
        ("scores", ("score_chosen", "score_rejected"), _other_than_scores),
        ("verdicts", ("verdict_chosen_first", "verdict_rejected_first"), _other_than_verdicts),
        ("answers", ("said", "said_swapped", "truth"), _other_than_verdicts),
    ):
        if {*columns} <= {*items.columns}:
            found = items.filter(pl.Series([wrong(row) for row in items.iter_rows(named=True)], dtype=pl.Boolean))
            if found.height:
                yield error_finding("items", f"{ITEMS_FILE} has outcomes that its {what} do not give: {_rows(found)}.")


def _rows(items: pl.DataFrame) -> str:
    ids = items["id"].unique(maintain_order=True).to_list()
    return f"{items.height:,} row{'s' * (items.height > 1)} (ids {first_ids(ids)})"


def _other_than_scores(row: Mapping[str, Any]) -> bool:
    better, worse, outcome = row["score_chosen"], row["score_rejected"], row["outcome"]
    if outcome in {"dropped", "equal"}:
        return row["margin"] is not None
    margin = math.nan if better is None or worse is None else better - worse
    if not math.isfinite(margin):
        return bool(outcome != "invalid")
    same = row["margin"] is not None and math.isclose(row["margin"], margin, rel_tol=SAME, abs_tol=SAME)
    return not same or outcome != ("win" if margin > 0 else "loss" if margin < 0 else "tie")


def _other_than_verdicts(row: Mapping[str, Any]) -> bool:
    if row["outcome"] == "equal":
        return row["verdict"] is not None
    return (row["verdict"], row["outcome"]) != (verdict_for_persona if "said" in row else verdict)(row)


def check_metrics(run: Run, again: pl.DataFrame | None = None) -> Findings:
    """Whether the metrics and their intervals are those of the items.

    again: made from the data; without them all are checked but those that need its texts.
    """
    unchecked = set() if again is not None else FROM_TEXTS
    try:
        if again is None and isinstance(run.config, PersonaJudgeRunConfig):
            again = compute_persona_metrics(run.config, run.items)
        elif again is None:
            again = measure(run.config.benchmark.description, decisions_of(run.items))
    except UserError as error:
        yield error_finding("metrics", f"The metrics cannot be computed from {ITEMS_FILE}: {error}")
        return
    both = run.metrics.join(again, on=PLACE, how="full", suffix="_again", nulls_equal=True, coalesce=False)
    kept, made = pl.col("group").is_not_null(), pl.col("group_again").is_not_null()
    other = ~pl.all_horizontal(*map(_alike, ("value", "low", "high", "n", "clusters")))
    for wrong, said in (
        (both.filter(kept & made & other), "numbers or intervals that {} does not give, such as"),
        (both.filter(kept & ~made & ~pl.col("metric").is_in(unchecked)), "numbers that nothing in {} gives, such as"),
    ):
        if wrong.height:
            row = wrong.row(0, named=True)
            rather = f": {_said(row, '')} rather than {_said(row, '_again')}" if row["group_again"] else ""
            yield error_finding(
                "metrics", f"{METRICS_FILE} has {wrong.height:,} {said.format(ITEMS_FILE)} {_place(row)}{rather}."
            )
    missing = both.filter(made & ~kept)
    if missing.height:
        row = {name: missing[f"{name}_again"][0] for name in PLACE}
        yield error_finding("metrics", f"{METRICS_FILE} lacks {missing.height:,} numbers, such as {_place(row)}.")


def _alike(name: str) -> pl.Expr:
    one, other = pl.col(name).cast(pl.Float64), pl.col(f"{name}_again").cast(pl.Float64)
    near = (one - other).abs() <= SAME * pl.max_horizontal(1.0, one.abs())
    return (one.is_null() & other.is_null()) | near.fill_null(value=False)


def _place(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[name]) for name in PLACE if row[name] is not None)


def _said(row: Mapping[str, Any], end: str) -> str:
    value, low, high, n = (row[f"{name}{end}"] for name in ("value", "low", "high", "n"))
    over = f" over {n}" if n else ""
    return "none" if value is None else f"{value:.6g}{over}" + ("" if low is None else f" [{low:.6g}, {high:.6g}]")


def check_record(run: Run) -> Findings:
    """Whether `run.json` says of the items what they are, and that what was asked is what answered."""
    config, result, items = run.config, run.result, run.items
    counts = dict(items.group_by("config").agg(pl.col("id").n_unique()).sort("config").iter_rows())
    said = config.data.rows
    # The persona judge is asked about some of the data's items.
    wrong = any(counts[name] > said.get(name, 0) for name in counts)
    if wrong or (run.verb != "judge-personas" and counts != said):
        yield error_finding(
            "record",
            f"{RUN_FILE} tells of {sum(said.values()):,} items, and {ITEMS_FILE} has {sum(counts.values()):,}.",
        )
    if run.scored is not None and "truncated" in items.columns:
        cut = items.filter("truncated").select("config", "id").n_unique() if items["truncated"].any() else 0
        if cut != run.scored.items_truncated:
            yield error_finding(
                "record",
                f"{RUN_FILE} tells of {run.scored.items_truncated:,} truncated items; {ITEMS_FILE} has {cut:,}.",
            )
    told: dict[str, tuple[Any, Any]] = {
        "benchmark": (config.data.benchmark_digest, digest(config.benchmark.description.model_dump(mode="json")))
    }
    if isinstance(config, ScoreRunConfig):
        told |= {
            name: (getattr(config.model, name), getattr(result.model, name)) for name in ("name", "kind", "digest")
        }
    elif isinstance(config, JudgeRunConfig | PersonaJudgeRunConfig):
        told |= {"name": (config.model.model, result.model.name)}
        told |= {"provider": (config.model.provider, result.model.provider)}
    for place, (asked, answered) in told.items():
        if asked != answered and not (place == "benchmark" and asked is None):
            yield error_finding(
                "settings", f"{RUN_FILE} says of the {place} {asked} as asked, and {answered} as it was."
            )


def check_replies(run: Run) -> Findings:
    """Whether each verdict or rating of a judge is what its recorded reply says."""
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
            f"{RUN_FILE} tells of {run.judged.calls:,} calls, and {LEDGER_FILE} has {ledger.height:,}.",
        )
    replies = {key: (outcome, text) for key, outcome, text in ledger.select("key", "outcome", "text").iter_rows()}
    gone: list[str] = []
    other: list[str] = []
    for row in run.items.iter_rows(named=True):
        for calls, said, parse in _asked(run, row):
            if (said is not None and not calls) or any(key not in replies for key in calls):
                gone.append(row["id"])
            elif calls and said != _parsed(parse, *replies[calls[-1]]):
                other.append(row["id"])
    if gone:
        yield error_finding(
            "replies", f"{LEDGER_FILE} lacks the calls of {len(gone):,} verdicts (ids {first_ids(gone)})."
        )
    if other:
        yield error_finding(
            "replies", f"{len(other):,} verdicts are not what their replies say (ids {first_ids(other)})."
        )


def _asked(run: Run, row: Mapping[str, Any]) -> Iterator[tuple[list[str], Any, Callable[[str], Any]]]:
    """The calls behind each verdict or rating of a row, what it is, and how it is read from a reply."""
    setting, rule = run.config.asked("setting"), run.config.asked("verdict_parsing")
    if setting is not None:
        for end in ("", "_swapped"):
            yield list(row.get(f"calls{end}") or ()), row[f"said{end}"], lambda text: parse_reply(text, setting).letter
    elif run.config.asked("pointwise"):
        for end in ("",) if "calls" in row else ("_chosen", "_rejected"):
            score = row[f"score{end}"]
            rated = INVALID if score is None or math.isnan(score) else score
            yield list(row.get(f"calls{end}") or ()), rated, lambda text: parse_rating(text, rule)
    else:
        for side in ("chosen", "rejected"):
            yield (
                list(row.get(f"calls_{side}_first") or ()),
                row[f"verdict_{side}_first"],
                lambda text: parse_choice(text, rule),
            )


def _parsed(parse: Callable[[str], Any], outcome: str, text: str | None) -> Any:
    """What is read from a reply; one that was refused, cut off or empty says nothing."""
    if outcome != "answer":
        return INVALID
    try:
        return parse(text or "")
    except InvalidAnswer:
        return INVALID
