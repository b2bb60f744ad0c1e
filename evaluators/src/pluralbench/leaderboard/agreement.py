"""Whether the files of a run say the same: items and metrics, scores and outcomes, replies and verdicts, settings."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl
from pluralbench_calls import InvalidAnswer, read_ledger
from pluralbench_calls.verdicts import parse_choice, parse_rating
from pluralbench_runs import UserError, read_toml

from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.evaluation.judge import VERDICTS, verdict
from pluralbench.evaluation.personas import INVALID, SWAPPED, Said, parse_reply, verdict_of, verdicts_of
from pluralbench.leaderboard.findings import Finding, named, refused, unusual
from pluralbench.metrics import measure, measure_personas
from pluralbench.metrics.certainty import THRESHOLD
from pluralbench.metrics.references import REFERENCES
from pluralbench.results.decisions import decisions_of
from pluralbench.results.metrics_frame import PLACE
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE, SETTINGS_FILE, Run

Findings = Iterator[Finding]
SAME = 1e-9
"""How far apart two computations of one number may lie, absolutely and relatively."""

FROM_TEXTS = {
    *(f"{metric}{reference}" for reference in REFERENCES for metric in ("", "overall_of_", "exact_match_of_")),
    "accuracy_with_invalid_as_half",
}
"""Metrics that are of texts, which a run does not keep."""


def check_items(run: Run) -> Findings:
    """Whether each decision is there once, and its outcome is what its scores or verdicts say."""
    items = run.items
    key = [name for name in ("config", "id", "response", "chosen", "rejected") if name in items.columns]
    twice = items.filter(items.select(key).is_duplicated())
    if twice.height:
        yield refused("items", f"{ITEMS_FILE} has {_rows(twice)} more than once.")
    for what, columns, wrong in (
        ("scores", ("score_chosen", "score_rejected"), _other_than_scores),
        ("verdicts", ("verdict_chosen_first", "verdict_rejected_first"), _other_than_verdicts),
        ("answers", ("said", "said_swapped", "truth"), _other_than_answers),
    ):
        if {*columns} <= {*items.columns}:
            found = items.filter(pl.Series([wrong(row) for row in items.iter_rows(named=True)], dtype=pl.Boolean))
            if found.height:
                yield refused("items", f"{ITEMS_FILE} has outcomes that its {what} do not give: {_rows(found)}.")


def _rows(items: pl.DataFrame) -> str:
    ids = items["id"].unique(maintain_order=True).to_list()
    return f"{items.height:,} row{'s' * (items.height > 1)} (ids {named(ids, len(ids))})"


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
    said = verdict(row["verdict_chosen_first"], row["verdict_rejected_first"])
    return (row["verdict"], row["outcome"]) != (said, VERDICTS[said])


def _other_than_answers(row: Mapping[str, Any]) -> bool:
    letters = [row["said"], SWAPPED.get(row["said_swapped"], row["said_swapped"])]
    said = [None if letter == INVALID else Said(letter) for letter in letters if letter is not None]
    found = verdict_of(said, row["truth"])
    return (row["verdict"], row["outcome"]) != (found["verdict"], found["outcome"])


def check_metrics(run: Run) -> Findings:
    """Whether the metrics are what the items give; all but those that need the texts."""
    try:
        again = _measured(run)
    except UserError as error:
        yield refused("metrics", f"The metrics cannot be computed from {ITEMS_FILE}: {error}")
        return
    both = run.metrics.join(again, on=PLACE, how="full", suffix="_again", nulls_equal=True, coalesce=False)
    kept, made = pl.col("group").is_not_null(), pl.col("group_again").is_not_null()
    value, low, high = (~_alike(name) for name in ("value", "low", "high"))
    other = both.filter(kept & made & (value | ~_alike("n") | ~_alike("clusters")))
    if other.height:
        row = other.row(0, named=True)
        yield refused(
            "metrics",
            f"{METRICS_FILE} has {other.height:,} numbers that {ITEMS_FILE} does not give, such as {_place(row)}: "
            f"{_said(row, '')} rather than {_said(row, '_again')}.",
        )
    unknown = both.filter(kept & ~made & ~pl.col("metric").is_in(FROM_TEXTS))
    if unknown.height:
        row = unknown.row(0, named=True)
        yield refused(
            "metrics",
            f"{METRICS_FILE} has {unknown.height:,} numbers that nothing in {ITEMS_FILE} gives, such as {_place(row)}.",
        )
    missing = both.filter(made & ~kept)
    if missing.height:
        yield unusual(
            "metrics", f"{METRICS_FILE} lacks {missing.height:,} numbers that this version of pluralbench computes."
        )
    bounds = both.filter(kept & made & ~(value | ~_alike("n") | ~_alike("clusters")) & (low | high))
    if bounds.height:
        yield unusual(
            "metrics",
            f"{METRICS_FILE} has {bounds.height:,} intervals that this version of pluralbench makes otherwise.",
        )


def _measured(run: Run) -> pl.DataFrame:
    benchmark = run.record.benchmark.description
    if run.record.verb != "judge-personas":
        return measure(benchmark, decisions_of(run.items))
    prompt, judging = run.record.prompt, run.record.judging
    verdicts = check_verdicts(verdicts_of(run.items, run.name, prompt.setting or "", prompt.variables or ""))
    threshold = (judging and judging.certainty_threshold) or THRESHOLD
    return measure_personas(benchmark, run.items, verdicts, threshold=threshold)


def _alike(name: str) -> pl.Expr:
    one, other = pl.col(name).cast(pl.Float64), pl.col(f"{name}_again").cast(pl.Float64)
    near = (one - other).abs() <= SAME * pl.max_horizontal(1.0, one.abs())
    return (one.is_null() & other.is_null()) | near.fill_null(value=False)


def _place(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[name]) for name in PLACE if row[name] is not None)


def _said(row: Mapping[str, Any], end: str) -> str:
    value = row[f"value{end}"]
    return "none" if value is None else f"{value:.6g} over {row[f'n{end}']}" if row[f"n{end}"] else f"{value:.6g}"


def check_record(run: Run) -> Findings:
    """Whether `run.json` says of the items what they are, and what `settings.toml` says bound the run."""
    record, items = run.record, run.items
    counts = dict(items.group_by("config").agg(pl.col("id").n_unique()).sort("config").iter_rows())
    said = record.data.rows
    # The persona judge is asked about some of the data's items.
    wrong = any(counts[name] > said.get(name, 0) for name in counts)
    if wrong or (record.verb != "judge-personas" and counts != said):
        yield refused(
            "record",
            f"{RUN_FILE} tells of {sum(said.values()):,} items, and {ITEMS_FILE} has {sum(counts.values()):,}.",
        )
    if record.scoring is not None and "truncated" in items.columns:
        cut = items.filter("truncated").select("config", "id").n_unique() if items["truncated"].any() else 0
        if cut != record.scoring.items_truncated:
            yield refused(
                "record",
                f"{RUN_FILE} tells of {record.scoring.items_truncated:,} truncated items; {ITEMS_FILE} has {cut:,}.",
            )
    try:
        settings = read_toml(run.path / SETTINGS_FILE, "settings of a run")
    except UserError as error:
        yield refused("settings", str(error))
        return
    if not {"model", "data"} <= settings.keys():
        yield unusual("settings", f"{SETTINGS_FILE} does not say what bound the run.")
    for place, (bound, told) in _bound(run, settings).items():
        if bound is not None and bound != told:
            yield refused("settings", f"{SETTINGS_FILE} says {place} {bound}, and {RUN_FILE} says {told}.")


def _bound(run: Run, settings: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What both files say, by its place in the settings: there, and in the record."""
    record = run.record
    told: dict[str, Any] = {
        "verb": record.verb,
        "model.name" if record.verb == "score" else "model.model": record.model.name,
        "data.benchmark": record.benchmark.name,
        "data.location": record.data.location,
        "data.revision": record.data.revision,
        "data.digest": record.data.digest,
        "data.limit": record.data.limit,
        "prompt.profile": record.prompt.profile,
        "prompt.plans_digest": record.prompt.plans_digest,
        "prompt.personas_digest": record.prompt.personas_digest,
        "prompts_digest": record.prompt.prompts_digest,
    }
    if record.scoring is not None and record.scoring.mode is not None:
        told |= {"scoring.mode": record.scoring.mode, "scoring.on_overflow": record.scoring.on_overflow}
    if record.judging is not None:
        told |= {"seed": record.seed, "judging.attempts": record.judging.attempts}
        told |= {"judging.setting": record.prompt.setting, "judging.variables": record.prompt.variables}
        told |= {"judging.oracle": record.prompt.oracle, "judging.pointwise": record.judging.pointwise}
    return {place: (_at(settings, place), value) for place, value in told.items()}


def _at(settings: Mapping[str, Any], place: str) -> Any:
    found: Any = settings
    for key in place.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def check_replies(run: Run) -> Findings:
    """Whether each verdict or rating of a judge is what its recorded reply says."""
    if run.record.judging is None:
        return
    if not (run.path / LEDGER_FILE).is_file():
        yield refused("replies", f"There is no {LEDGER_FILE}, so no verdict can be traced to a reply.")
        return
    try:
        ledger = read_ledger(run.path / LEDGER_FILE)
    except UserError as error:
        yield refused("replies", str(error))
        return
    if ledger.height != run.record.judging.calls:
        yield refused(
            "replies",
            f"{RUN_FILE} tells of {run.record.judging.calls:,} calls, and {LEDGER_FILE} has {ledger.height:,}.",
        )
    if not any(name.startswith("calls") for name in run.items.columns):
        yield unusual("replies", f"{ITEMS_FILE} does not name the calls behind its verdicts, so they were not traced.")
        return
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
        yield refused(
            "replies", f"{LEDGER_FILE} lacks the calls of {len(gone):,} verdicts (ids {named(gone, len(gone))})."
        )
    if other:
        yield refused(
            "replies", f"{len(other):,} verdicts are not what their replies say (ids {named(other, len(other))})."
        )


def _asked(run: Run, row: Mapping[str, Any]) -> Iterator[tuple[list[str], Any, Callable[[str], Any]]]:
    """The calls behind each verdict or rating of a row, what it is, and how it is read from a reply."""
    judging, setting = run.record.judging, run.record.prompt.setting
    rule: Any = (judging and judging.verdict_rule) or "lenient"
    if setting is not None:
        for end in ("", "_swapped"):
            yield list(row.get(f"calls{end}") or ()), row[f"said{end}"], lambda text: parse_reply(text, setting).letter  # type: ignore[arg-type]
    elif judging is not None and judging.pointwise:
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
