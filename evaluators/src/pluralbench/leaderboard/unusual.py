"""Remarks on valid runs with unusual data, settings, models or results, for readers of a leaderboard."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import read_ledger
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import FrozenModel, UserError, plural

from pluralbench.config import PromptConfig, ReplyConfig
from pluralbench.data.benchmarks import Benchmark, benchmark_entries, is_published_data, known_benchmarks
from pluralbench.data.samples import SAMPLE
from pluralbench.data.texts import first_ids
from pluralbench.leaderboard.findings import Finding, warning_finding
from pluralbench.results.decisions import decisions_of
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.runs import LEDGER_FILE, Downstream, Run

Findings = Iterator[Finding]
CONDITIONS = {"setting", "variables", "verdict_parsing"}
"""A judge's settings that are columns of a leaderboard, so other values are not unusual."""

SCORES = ("score", "score_chosen", "score_rejected")
VERDICTS = ("verdict_chosen_first", "verdict_rejected_first", "choice", "choice_swapped")
ONE_SIDED = 0.9
"""Share of verdicts for the first response at which the order is taken to decide."""

FEW, MANY = 10, 100
"""Minimum numbers of decisions or distinct values for remarks on all of them, or on their distribution."""

LABELS = 2
NEAR, APART = 0.1, 0.25
"""Fractions of the median absolute margin that count as near 0 and as far from 0."""

RARE = 0.001
"""Significance level for margins near 0 that are right more often than a coin. Of 20 reward models with published
scores, on four benchmarks, the smallest p-value was 0.018."""

OF_THE_ITEMS = {"columns", "sections", "strata", "train_split"}
"""Fields of a benchmark's description that follow from the items or are compared by themselves."""


def check_selection(run: Run | Downstream) -> Findings:
    """Yield remarks on runs of a sample or of some of the items."""
    data, benchmark = run.config.data, run.config.benchmark
    if data.location == SAMPLE:
        yield warning_finding("sample", "It uses the sample that comes with the package, which is not the benchmark.")
    if data.limit is not None:
        yield warning_finding("limit", f"It uses only the first {data.limit:,} items of each config.")
    if data.items is not None:
        yield warning_finding("items", f"It uses {_size(run)}, drawn by seed {data.items_seed}.")
    if isinstance(run.config, EvaluationRunConfig) and (limit := run.config.judge_setting("limit")) is not None:
        yield warning_finding("limit", f"It uses at most {limit:,} items of each task.")
    if data.configs:
        yield warning_finding("configs", f"It uses only the configs {', '.join(data.configs)}.")
    if data.split is not None and data.split != benchmark.description.split:
        yield warning_finding(
            "split", f"It uses the split {data.split}; the benchmark's is {benchmark.description.split}."
        )
    if data.empty:
        handling = "left out" if data.on_empty == "drop" else "scored as they are"
        yield warning_finding("empty", f"{len(data.empty):,} items with an empty prompt or response are {handling}.")


def _size(run: Run | Downstream) -> str:
    return run.size if isinstance(run.config, EvaluationRunConfig) else plural(run.config.data.items or 0, "item")


def check_benchmark_data(run: Run) -> Findings:
    """Yield remarks on runs of other data, or with other rules than the benchmark's."""
    benchmark = run.config.benchmark
    registered = known_benchmarks().get(benchmark.name)
    if registered is None:
        yield warning_finding(
            "benchmark", f"`{benchmark.name}` is not a benchmark of pluralbench, but a description of the run's author."
        )
        return
    yield from _other_data(run, registered)
    rules = [name for name in Benchmark.model_fields if name not in OF_THE_ITEMS]
    other = [name for name in rules if getattr(registered, name) != getattr(benchmark.description, name)]
    # The description of data without sections has none: its items are averaged without weights.
    subsets = run.items.select("config", "id", "subset").unique()["subset"]
    if benchmark.description.sections not in ({}, registered.fit_to(subsets).sections):
        other.append("sections")
    if other:
        legacy = not benchmark.description.ties_break_exact_match or bool(registered.legacy and "sections" in other)
        suffix = " (legacy rules)" if legacy else ""
        yield warning_finding(
            "rules", f"Its rules differ from those of `{benchmark.name}`: {', '.join(other)}{suffix}."
        )


def _other_data(run: Run, registered: Benchmark) -> Findings:
    """Yield remarks on a run that does not read the benchmark's own data and columns."""
    data, benchmark = run.config.data, run.config.benchmark
    is_shape = registered.data is None and benchmark_entries([benchmark.name])[benchmark.name].card.items is None
    columns = benchmark.description.columns
    named = ("pairs", *(columns.explicit if is_shape else ()))
    own = {name: getattr(registered.columns, name) for name in named} | {"explicit": ()}
    if columns.model_copy(update=own) != registered.columns:
        yield warning_finding("columns", "It reads other columns than the benchmark does.")
    if registered.data is None or data.location == SAMPLE:
        return
    if not is_published_data(benchmark.name, benchmark.description, data.location, data.revision):
        yield warning_finding("data", f"Its data is {data.location}; the benchmark's is {registered.data}.")


def check_settings(run: Run | Downstream) -> Findings:
    """Yield remarks on settings that differ from the defaults."""
    config = run.config
    settings: FrozenModel = getattr(config, "judging", None) or getattr(config, "scoring")  # noqa: B009
    for name, field in type(settings).model_fields.items():
        value, default = getattr(settings, name), field.default
        if name == "reply_format" and isinstance(settings, ReplyConfig):
            default = settings.default_format
        if value is not None and value != default and name not in CONDITIONS | ScoringConfig.runtime_only:
            yield _setting(name, value, default)
    for name, value, default in (
        ("on_empty", config.data.on_empty, config.benchmark.description.on_empty),
        ("items_seed", None if config.data.items else config.data.items_seed, 0),
        ("profile_size", config.prompt.profile_size, PromptConfig().profile_size),
        ("seed", getattr(config, "seed", 0), 0),
    ):
        if value is not None and value != default:
            yield _setting(name, value, default)


def _setting(name: str, value: Any, default: Any) -> Finding:
    return warning_finding("settings", f"{name.replace('_', ' ')} is {_word(value)}; the default is {_word(default)}.")


def _word(value: Any) -> str:
    return "not set" if value is None else {"True": "yes", "False": "no"}.get(str(value), str(value))


def check_model(run: Run) -> Findings:
    """Yield remarks on models that others cannot run, or that ran in an unusual way."""
    model, scored = run.result.model, run.scored
    if model.kind == "function":
        yield warning_finding("model", "The model is a Python function, which others cannot run.")
    elif scored is not None and scored.work is None and scored.served is None:
        yield warning_finding(
            "model", f"It does not record how {model.name} computed its scores: neither in this process nor on servers."
        )
    if model.digest is not None and model.commit is None and model.kind != "function":
        yield warning_finding("model", "The model is a local directory, not a revision on the Hub.")
    if model.trust_remote_code:
        yield warning_finding("model", "It ran Python code that comes with the model.")
    if model.dtype is not None and model.dtype not in {"float32", "bfloat16", "float16"}:
        yield warning_finding("model", f"It ran in {model.dtype}.")
    if run.verb == "score" and model.architecture is not None and model.chat_template_digest is None:
        yield warning_finding(
            "template", "The model has no chat template, so the messages of a conversation are joined as plain text."
        )


def check_answering_model(run: Run) -> Findings:
    """Yield a remark on replies of another model than the one that was asked, as servers name it."""
    if run.judged is None:
        return
    try:
        names = read_ledger(run.path / LEDGER_FILE)["model"].unique().sort().to_list()
    except UserError:  # reported by `check_replies`
        return
    asked = Path(run.result.model.name).name.casefold()
    # A server may add a date to a name, or leave out the organization.
    others = [name for name in names if name and asked not in name.casefold()]
    if others:
        yield warning_finding("model", f"Its replies are of {first_ids(others)}; the model asked is {run.name}.")


def check_software(run: Run[Any, Any]) -> Findings:
    """Yield remarks on runs with unreleased or modified software."""
    provenance = run.provenance
    if provenance.git is not None and provenance.git.changed:
        yield warning_finding("software", f"Its code has changes on top of the commit {provenance.git.commit[:7]}.")
    version = provenance.packages.get("pluralbench", "")
    if any(word in version for word in ("dev", "dirty", "+")):
        yield warning_finding("software", f"It was made with pluralbench {version}, which is not a release.")
    if not version:
        yield warning_finding("software", "It does not record the version of pluralbench.")


def check_outcomes(run: Run) -> Findings:
    """Yield remarks on truncated, dropped and invalid decisions, ties, constant scores and position bias."""
    decisions = decisions_of(run.items).filter(pl.col("outcome") != "equal")
    n = decisions.height
    cut = decisions.filter("truncated").select("config", "id").n_unique()
    if cut:
        yield warning_finding("truncated", f"{cut:,} inputs were truncated to fit the model.")
    for outcome, problem in (("dropped", "were too long and left out"), ("invalid", "have no valid score or verdict")):
        own = decisions.filter(outcome=outcome)
        if own.height:
            ids = own["id"].unique(maintain_order=True).to_list()
            yield warning_finding(outcome, f"{own.height:,} of {n:,} decisions {problem} (ids {first_ids(ids)}).")
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
            "position", f"The judge chose the response shown first in {first:.0%} of its valid verdicts."
        )
    coin, high = run.estimate("overall_of_coin", "overall").value, run.headline.high
    if coin is not None and high is not None and high < coin:
        yield warning_finding("coin", "It is significantly worse than a coin; chosen and rejected may be exchanged.")


def check_margins(run: Run) -> Findings:
    """Yield remarks on perfect accuracy and on margins that do not look like those of a model.

    A model's margins near 0 are right about half the time, however good the model is. Labels in place of scores leave
    no margin near 0; scores that were exchanged where they were wrong leave only right ones there. This is a hint: only
    scoring again shows whether the scores are the model's own.
    """
    decided = decisions_of(run.items).filter(pl.col("outcome").is_in(["win", "loss", "tie", "invalid"]))
    wins = decided.filter(outcome="win").height
    if wins >= FEW and not decided.filter(outcome="loss").height:
        yield warning_finding("right", f"Of its {decided.height:,} decisions, {wins:,} are right and none is wrong.")
    margins = decided["margin"].drop_nulls()
    margins = margins.filter(margins.is_finite() & (margins != 0))
    if run.verb != "score" or len(margins) < FEW:
        return
    sizes = margins.abs()
    kinds = sizes.round_sig_figs(6).n_unique()
    if kinds <= LABELS:
        yield warning_finding("margins", "Its margins have at most two distinct sizes, as labels do.")
        return
    least, middle = float(sizes.min()), float(sizes.median())  # type: ignore[arg-type]
    # Ratings have few sizes, and none near 0.
    if least > APART * middle and len(margins) >= MANY and kinds > len(margins) / 2:
        yield warning_finding(
            "margins", f"None of its {len(margins):,} margins is near 0, where margins of models are densest."
        )
    near = margins.filter(sizes <= NEAR * middle)
    won = int((near > 0).sum())
    if coin_probability(len(near) - won, len(near)) < RARE:
        yield warning_finding(
            "margins",
            f"Of its {len(near):,} margins nearest to 0, where models are right half the time, {won:,} are right.",
        )


def coin_probability(successes: int, trials: int) -> float:
    """Return the probability that a coin has at most `successes` successes in `trials`."""
    return float(sum(math.comb(trials, k) for k in range(successes + 1)) / (1 << trials))


def check_duplicates(run: Run, others: Sequence[Run]) -> Findings:
    """Yield remarks on a run with the scores of another, or with other data than most runs of its benchmark."""
    others = [other for other in others if other.config.benchmark.name == run.config.benchmark.name]
    for name in dict.fromkeys(
        other.name for other in others if other.name != run.name and _has_same_results(run, other)
    ):
        yield warning_finding("twice", f"Its scores or replies are identical to those of {name}.")
    contents = [other.config.data.digest for other in others]
    if len(contents) < 2:
        return
    most = max(sorted(set(contents)), key=contents.count)
    if contents.count(most) > 1 and run.config.data.digest != most:
        at = f" at revision {run.config.data.revision[:12]}" if run.config.data.revision else ""
        yield warning_finding(
            "data",
            f"Its data ({run.config.data.location}{at}) differs from that of {contents.count(most):,} of the "
            f"{len(contents):,} runs of this benchmark.",
        )


def _has_same_results(run: Run, other: Run) -> bool:
    """Return whether two runs have the same scores or replies; False for few distinct values."""
    names = [name for name in run.items.columns if name in (*SCORES, *VERDICTS)]
    if not {*names} <= {*other.items.columns} or not run.items.select(names).equals(other.items.select(names)):
        return False
    if run.judged is None:
        return run.items[names[-1]].n_unique() > FEW if names else False
    try:
        texts = [read_ledger(one.path / LEDGER_FILE)["text"].sort() for one in (run, other)]
    except UserError:  # reported by `check_replies`
        return False
    return texts[0].n_unique() > FEW and texts[0].equals(texts[1])
