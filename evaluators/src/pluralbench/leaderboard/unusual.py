"""What is unusual about a valid run, so that a reader of a leaderboard knows it."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from pluralbench_calls import read_ledger
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import FrozenModel, UserError

from pluralbench.config import ReplyConfig
from pluralbench.data.benchmarks import Benchmark, known_benchmarks
from pluralbench.data.samples import SAMPLE
from pluralbench.data.texts import first_ids
from pluralbench.leaderboard.findings import Finding, warning_finding
from pluralbench.results.decisions import decisions_of
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.runs import LEDGER_FILE, Run

Findings = Iterator[Finding]
CHOSEN = {"setting", "variables", "verdict_parsing"}
"""Of a judge's settings what names a column of a leaderboard rather than being odd."""

SCORES = ("score", "score_chosen", "score_rejected")
SAID = ("verdict_chosen_first", "verdict_rejected_first", "said", "said_swapped")
ONE_SIDED = 0.9
"""A share of verdicts for the response that is shown first from which the order decides."""

FEW, MANY = 10, 100
"""Decisions, or values that differ, below which nothing is said of all of them, or of where they lie."""

LABELS = 2
NEAR, APART = 0.1, 0.25
"""Of the median size of a margin: what is near 0, and what is far from it."""

RARE = 0.001
"""How rarely a coin may do as well as the margins near 0. Of 20 reward models whose scores are published, on four
benchmarks, the rarest was 0.018."""

RULES = (
    "overall",
    "excluded_configs",
    "labels",
    "multiple_responses",
    "group_by_prompt",
    "ties_break_exact_match",
    "reference",
    "history",
)
"""What of a benchmark's description makes its numbers."""


def check_benchmark_data(run: Run) -> Findings:
    """Whether the run is of all items of the benchmark, counted by its rules."""
    data, benchmark = run.config.data, run.config.benchmark
    if data.location == SAMPLE:
        yield warning_finding("sample", "It is of the few rows that come with the package, which are no benchmark.")
    if data.limit is not None:
        yield warning_finding("limit", f"It is of the first {data.limit:,} items of each config.")
    limit = run.config.asked("limit")
    if limit is not None:
        yield warning_finding("limit", f"It is of at most {limit:,} items of each task.")
    if data.configs:
        yield warning_finding("configs", f"It is of these configs alone: {', '.join(data.configs)}.")
    if data.split is not None and data.split != benchmark.description.split:
        yield warning_finding(
            "split", f"It is of the split {data.split}, and the benchmark's is {benchmark.description.split}."
        )
    if data.empty:
        done = "left out" if data.on_empty == "drop" else "scored as they are"
        yield warning_finding("empty", f"{len(data.empty):,} items with an empty prompt or response are {done}.")
    known = known_benchmarks().get(benchmark.name)
    if known is None:
        yield warning_finding(
            "benchmark", f"`{benchmark.name}` is no benchmark of pluralbench, but one that was described by hand."
        )
        return
    yield from _other_data(run, known)
    other = [name for name in RULES if getattr(known, name) != getattr(benchmark.description, name)]
    # Items of no section are averaged plainly, which the fitted description says by having no sections.
    if benchmark.description.sections not in ({}, known.sections):
        other.append("sections")
    if other:
        legacy = not benchmark.description.ties_break_exact_match or bool(known.legacy and "sections" in other)
        why = " (legacy rules)" if legacy else ""
        yield warning_finding(
            "rules", f"It is counted in another way than `{benchmark.name}` is: {', '.join(other)}{why}."
        )


def _other_data(run: Run, known: Benchmark) -> Findings:
    """Whether a benchmark that has data of its own was read from there, as its columns say."""
    data, columns = run.config.data, run.config.benchmark.description.columns
    if known.data is None or data.location == SAMPLE:
        return
    if data.location != known.data:
        yield warning_finding("data", f"Its data is {data.location}, and the benchmark's own is {known.data}.")
    if columns.model_copy(update={"explicit": ()}) != known.columns:
        yield warning_finding("columns", "It reads other columns than the benchmark does.")


def check_settings(run: Run) -> Findings:
    """What was set to other values than the defaults are."""
    config = run.config
    asked: FrozenModel = config.scoring if isinstance(config, ScoreRunConfig) else getattr(config, "judging")  # noqa: B009
    for name, field in type(asked).model_fields.items():
        value, usual = getattr(asked, name), field.default
        if name == "reply_format" and isinstance(asked, ReplyConfig):
            usual = asked.default_format
        if value is not None and value != usual and name not in CHOSEN | ScoringConfig.runtime_only:
            yield warning_finding(
                "settings", f"{name.replace('_', ' ')} is {_word(value)}; the default is {_word(usual)}."
            )


def _word(value: Any) -> str:
    return "not set" if value is None else {"True": "yes", "False": "no"}.get(str(value), str(value))


def check_model(run: Run) -> Findings:
    """Whether others could run the same model."""
    model, scored = run.result.model, run.scored
    if model.kind == "function":
        yield warning_finding("model", "The model is a function, which others do not have.")
    elif scored is not None and scored.work is None and scored.served is None:
        yield warning_finding(
            "model", f"It does not say how {model.name} computed its scores: neither here nor by servers."
        )
    if model.digest is not None and model.commit is None and model.kind != "function":
        yield warning_finding("model", "The model is a folder of its author's, and no revision on the Hub.")
    if model.trust_remote_code:
        yield warning_finding("model", "It ran code that comes with the model.")
    if model.dtype is not None and model.dtype not in {"float32", "bfloat16", "float16"}:
        yield warning_finding("model", f"It ran in {model.dtype}.")
    if run.verb == "score" and model.architecture is not None and model.chat_template_digest is None:
        yield warning_finding("template", "The model has no chat template, so conversations are put together plainly.")


def check_software(run: Run) -> Findings:
    """Whether the software that made it is one that others can have."""
    made = run.provenance
    if made.git is not None and made.git.changed:
        yield warning_finding("software", f"It was made by code with changes beside the commit {made.git.commit[:7]}.")
    version = made.packages.get("pluralbench", "")
    if any(word in version for word in ("dev", "dirty", "+")):
        yield warning_finding("software", f"It was made by pluralbench {version}, which is no release.")
    if not version:
        yield warning_finding("software", "It does not say by which version of pluralbench it was made.")


def check_outcomes(run: Run) -> Findings:
    """What decisions show: what was cut, left out or cannot be read, ties, and scores that say nothing."""
    decisions = decisions_of(run.items).filter(pl.col("outcome") != "equal")
    n = decisions.height
    cut = decisions.filter("truncated").select("config", "id").n_unique()
    if cut:
        yield warning_finding("truncated", f"{cut:,} inputs were truncated to fit the model.")
    for outcome, said in (("dropped", "were too long and left out"), ("invalid", "have no valid score or verdict")):
        own = decisions.filter(outcome=outcome)
        if own.height:
            ids = own["id"].unique(maintain_order=True).to_list()
            yield warning_finding(outcome, f"{own.height:,} of {n:,} decisions {said} (ids {first_ids(ids)}).")
    ties = decisions.filter(outcome="tie").height
    if n and ties == n:
        yield warning_finding("ties", "Every decision is a tie.")
    elif ties > n / 2:
        yield warning_finding("ties", f"{ties:,} of {n:,} decisions are ties.")
    scores = pl.concat(
        [run.items[name].drop_nulls() for name in run.items.columns if name in SCORES] or [pl.Series([])]
    )
    if len(scores) > 1 and scores.n_unique() == 1:
        yield warning_finding("scores", f"All scores are the same, {scores[0]:g}.")
    first = run.estimate("share_of_first", "position").value
    if first is not None and not 1 - ONE_SIDED <= first <= ONE_SIDED:
        yield warning_finding(
            "position", f"The judge chose the response that is shown first in {first:.0%} of its valid verdicts."
        )
    coin, high = run.estimate("overall_of_coin", "overall").value, run.headline.high
    if coin is not None and high is not None and high < coin:
        yield warning_finding("coin", "It is surely worse than a coin, as where chosen and rejected are exchanged.")


def check_margins(run: Run) -> Findings:
    """Whether everything is right, or the margins do not look like those of a model.

    The scores of a model lie on both sides of nothing alike: where it barely tells two responses apart, it is wrong
    about half as often as not, however good it is. Labels leave that place empty, and scores that were exchanged where
    they were wrong leave it to the right ones. That is a hint: only scoring again shows whose scores they are.
    """
    decided = decisions_of(run.items).filter(pl.col("outcome").is_in(["win", "loss", "tie", "invalid"]))
    wins = decided.filter(outcome="win").height
    if wins >= FEW and not decided.filter(outcome="loss").height:
        yield warning_finding("right", f"Of its {decided.height:,} decisions {wins:,} are right and none is wrong.")
    margins = decided["margin"].drop_nulls()
    margins = margins.filter(margins.is_finite() & (margins != 0))
    if run.verb != "score" or len(margins) < FEW:
        return
    sizes = margins.abs()
    kinds = sizes.round_sig_figs(6).n_unique()
    if kinds <= LABELS:
        yield warning_finding("margins", "Its margins have no more than two sizes, as labels have.")
        return
    least, middle = float(sizes.min()), float(sizes.median())  # type: ignore[arg-type]
    # Ratings have few sizes, and none near 0.
    if least > APART * middle and len(margins) >= MANY and kinds > len(margins) / 2:
        yield warning_finding(
            "margins", f"None of its {len(margins):,} margins is near 0, where those of models are densest."
        )
    near = margins.filter(sizes <= NEAR * middle)
    won = int((near > 0).sum())
    if coin_probability(len(near) - won, len(near)) < RARE:
        yield warning_finding(
            "margins",
            f"Of its {len(near):,} margins nearest to 0, where models are right half the time, {won:,} are right.",
        )


def coin_probability(successes: int, trials: int) -> float:
    """How likely a coin is to have so few successes or fewer."""
    return float(sum(math.comb(trials, k) for k in range(successes + 1)) / (1 << trials))


def check_among(run: Run, others: Sequence[Run]) -> Findings:
    """Whether the run is of the same data as most others of its benchmark, and its scores are those of no other."""
    others = [other for other in others if other.config.benchmark.name == run.config.benchmark.name]
    for name in dict.fromkeys(other.name for other in others if other.name != run.name and _alike(run, other)):
        yield warning_finding("twice", f"It has the very scores or replies of {name}.")
    contents = [other.config.data.digest for other in others]
    if len(contents) < 2:
        return
    most = max(sorted(set(contents)), key=contents.count)
    if contents.count(most) > 1 and run.config.data.digest != most:
        at = f" at revision {run.config.data.revision[:12]}" if run.config.data.revision else ""
        yield warning_finding(
            "data",
            f"Its data ({run.config.data.location}{at}) is not that of {contents.count(most):,} of the "
            f"{len(contents):,} runs of this benchmark.",
        )


def _alike(run: Run, other: Run) -> bool:
    """Whether two runs hold the same scores, or the same replies; of few values that proves nothing."""
    names = [name for name in run.items.columns if name in (*SCORES, *SAID)]
    if not {*names} <= {*other.items.columns} or not run.items.select(names).equals(other.items.select(names)):
        return False
    if run.judged is None:
        return run.items[names[-1]].n_unique() > FEW if names else False
    try:
        texts = [read_ledger(one.path / LEDGER_FILE)["text"].sort() for one in (run, other)]
    except UserError:  # `check_replies` says so
        return False
    return texts[0].n_unique() > FEW and texts[0].equals(texts[1])
