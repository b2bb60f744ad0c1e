"""What is unusual about a valid run, so that a reader of a leaderboard knows it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_rewards import Scoring
from pluralbench_runs import Table, UserError, read_toml

from pluralbench.data.benchmarks import known_benchmarks
from pluralbench.data.samples import SAMPLE
from pluralbench.descriptions import Judging, PersonaJudging
from pluralbench.leaderboard.findings import Finding, named, unusual
from pluralbench.results.decisions import decisions_of
from pluralbench.results.runs import SETTINGS_FILE, Run

Findings = Iterator[Finding]
CHOSEN = {"setting", "variables", "verdicts"}
"""Of a judge's settings what names a column of a leaderboard rather than being odd."""

SCORES = ("score", "score_chosen", "score_rejected")
ONE_SIDED = 0.9
"""A share of verdicts for the response that is shown first from which the order decides."""

RULES = ("overall", "apart", "merged", "strict", "reference", "earlier")
"""What of a benchmark's description makes its numbers."""


def check_data_asked(run: Run) -> Findings:
    """Whether the run is of all items of the benchmark, counted by its rules."""
    data, benchmark = run.record.data, run.record.benchmark
    if data.location == SAMPLE:
        yield unusual("sample", "It is of the few rows that come with the package, which are no benchmark.")
    if data.limit is not None:
        yield unusual("limit", f"It is of the first {data.limit:,} items of each config.")
    samples = run.record.judging.samples if run.record.judging else None
    if samples is not None:
        yield unusual("limit", f"It is of at most {samples:,} items of each task.")
    if data.configs:
        yield unusual("configs", f"It is of these configs alone: {', '.join(data.configs)}.")
    if data.split is not None and data.split != benchmark.description.split:
        yield unusual(
            "split", f"It is of the split {data.split}, and the benchmark's is {benchmark.description.split}."
        )
    if data.empty:
        done = "left out" if data.on_empty == "drop" else "scored as they are"
        yield unusual("empty", f"{len(data.empty):,} items with an empty prompt or response are {done}.")
    known = known_benchmarks().get(benchmark.name)
    if known is None:
        yield unusual(
            "benchmark", f"`{benchmark.name}` is no benchmark of pluralbench, but one that was described by hand."
        )
        return
    other = [name for name in RULES if getattr(known, name) != getattr(benchmark.description, name)]
    # Items of no section are averaged plainly, which the fitted description says by having no sections.
    if benchmark.description.sections not in ({}, known.sections):
        other.append("sections")
    if other:
        legacy = not benchmark.description.strict or bool(known.legacy and "sections" in other)
        why = " (legacy rules)" if legacy else ""
        yield unusual("rules", f"It is counted in another way than `{benchmark.name}` is: {', '.join(other)}{why}.")


def check_settings(run: Run) -> Findings:
    """What was set to other values than the defaults are, as `settings.toml` says."""
    try:
        settings = read_toml(run.path / SETTINGS_FILE, "settings of a run")
    except UserError:  # `check_record` says so
        return
    judging = PersonaJudging if run.record.verb == "judge-personas" else Judging
    for table, model in (("scoring", Scoring), ("judging", judging)):
        found = {
            name: value
            for name, value in _other(settings.get(table, {}), model).items()
            if name not in CHOSEN and not (table == "scoring" and name in {"token_budget", "compile"})
        }
        for name, (value, usual) in found.items():
            yield unusual("settings", f"{name.replace('_', ' ')} is {_word(value)}; the default is {_word(usual)}.")


def _other(given: Mapping[str, Any], model: type[Table]) -> dict[str, tuple[Any, Any]]:
    defaults = {name: field.default for name, field in model.model_fields.items()}
    return {
        name: (value, defaults[name]) for name, value in given.items() if name in defaults and value != defaults[name]
    }


def _word(value: Any) -> str:
    return "not set" if value is None else {"True": "yes", "False": "no"}.get(str(value), str(value))


def check_model(run: Run) -> Findings:
    """Whether others could run the same model."""
    model = run.record.model
    if model.kind == "function":
        yield unusual("model", "The model is a function, which others do not have.")
    if model.digest is not None and model.commit is None and model.kind != "function":
        yield unusual("model", "The model is a folder of its author's, and no revision on the Hub.")
    if model.trust_remote_code:
        yield unusual("model", "It ran code that comes with the model.")
    if model.dtype is not None and model.dtype not in {"float32", "bfloat16", "float16"}:
        yield unusual("model", f"It ran in {model.dtype}.")
    if run.record.verb == "score" and model.architecture is not None and model.chat_template_digest is None:
        yield unusual("template", "The model has no chat template, so conversations are put together plainly.")


def check_software(run: Run) -> Findings:
    """Whether the software that made it is one that others can have."""
    made = run.record.provenance
    if made.git is not None and made.git.changed:
        yield unusual("software", f"It was made by code with changes beside the commit {made.git.commit[:7]}.")
    version = made.packages.get("pluralbench", "")
    if any(word in version for word in ("dev", "dirty", "+")):
        yield unusual("software", f"It was made by pluralbench {version}, which is no release.")
    if not version:
        yield unusual("software", "It does not say by which version of pluralbench it was made.")


def check_outcomes(run: Run) -> Findings:
    """What decisions show: what was cut, left out or cannot be read, ties, and scores that say nothing."""
    decisions = decisions_of(run.items).filter(pl.col("outcome") != "equal")
    n = decisions.height
    cut = decisions.filter("truncated").select("config", "id").n_unique()
    if cut:
        yield unusual("truncated", f"{cut:,} inputs were truncated to fit the model.")
    for outcome, said in (("dropped", "were too long and left out"), ("invalid", "have no valid score or verdict")):
        own = decisions.filter(outcome=outcome)
        if own.height:
            ids = own["id"].unique(maintain_order=True).to_list()
            yield unusual(outcome, f"{own.height:,} of {n:,} decisions {said} (ids {named(ids, len(ids))}).")
    ties = decisions.filter(outcome="tie").height
    if n and ties == n:
        yield unusual("ties", "Every decision is a tie.")
    elif ties > n / 2:
        yield unusual("ties", f"{ties:,} of {n:,} decisions are ties.")
    scores = pl.concat(
        [run.items[name].drop_nulls() for name in run.items.columns if name in SCORES] or [pl.Series([])]
    )
    if len(scores) > 1 and scores.n_unique() == 1:
        yield unusual("scores", f"All scores are the same, {scores[0]:g}.")
    first = run.estimate("share_of_first", "position").value
    if first is not None and not 1 - ONE_SIDED <= first <= ONE_SIDED:
        yield unusual(
            "position", f"The judge chose the response that is shown first in {first:.0%} of its valid verdicts."
        )
    coin, high = run.estimate("overall_of_coin", "overall").value, run.headline.high
    if coin is not None and high is not None and high < coin:
        yield unusual("coin", "It is surely worse than a coin, as where chosen and rejected are exchanged.")


def check_among(run: Run, others: Sequence[Run]) -> Findings:
    """Whether the run is of the same data as most others of its benchmark."""
    contents = [
        other.record.data.digest for other in others if other.record.benchmark.name == run.record.benchmark.name
    ]
    if len(contents) < 2:
        return
    most = max(sorted(set(contents)), key=contents.count)
    if contents.count(most) > 1 and run.record.data.digest != most:
        at = f" at revision {run.record.data.revision[:12]}" if run.record.data.revision else ""
        yield unusual(
            "data",
            f"Its data ({run.record.data.location}{at}) is not that of {contents.count(most):,} of the "
            f"{len(contents):,} runs of this benchmark.",
        )
