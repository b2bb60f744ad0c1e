"""Tables and notes of `best-of-n` and `optimize`.

The tables by reward model and config have the layout of Personalized RewardBench, Table 5.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_runs import plural

from pluralbench.data.rules import rule_of
from pluralbench.metrics.metric import START
from pluralbench.reports.layout import first_words
from pluralbench.reports.notes import NAMED, list_names
from pluralbench.reports.tables import Column, Report, Row, Table, long_frame
from pluralbench.results.names import unique_names
from pluralbench.results.numbers import (
    DASH,
    change,
    four_digits,
    signed,
    three_digits,
    two_digits,
    whole_percent,
    with_interval,
)
from pluralbench.results.runs import Downstream

RANK, PROMPTS = "Rank", "prompts"
RANKED = "Ranks ignore the intervals; reward models with overlapping intervals may not differ."
UNEVEN = "Where rows are over different prompts, which `prompts` counts, they cannot be compared and have no rank."
SAME_PROMPTS = {
    True: " It was judged on the prompts that it was optimized on.",
    False: "",
    None: " The prompts that it was trained on are not known.",
}
KEYS = {"rubric": "rubric score", "rating": "rating", "win": "win rate"}


def selects(run: Downstream) -> bool:
    """Return whether reward models select among sampled answers: a run of `best-of-n` with reward models."""
    return run.verb == "best-of-n" and bool(run.result.rewards)


def curve_table(run: Downstream) -> Table:
    """Make a row for each reward model, the best first: outcome at each k, gain and agreement with the judge.

    Without a judge, the values are the reward models' own estimates, in standard deviations within prompts.
    """
    metric, outcome, gains = shown_metric(run), run.result.outcome, of_rewards(run, "outcome_gain")
    columns = [Column(f"best of {k}", three_digits, bounds=False, part=True) for k in run.result.sampling.sizes]
    columns += [Column("gain", change, part=True), Column("agreement", signed, bounds=False, part=True)]
    rows = []
    for model in curve_order(run):
        outcomes = [run.estimate(metric, model=model, k=k) for k in run.result.sampling.sizes]
        rows.append(Row(model, (*outcomes, gains[model], run.estimate("rank_correlation", model=model))))
    value = "promised gain" if outcome is None else KEYS[run.config.outcome.measure]
    policy = Path(run.result.policy.name).name
    return Table(f"Best of k from {policy} on {run.config.benchmark.title}: {value}", "reward model", columns, rows)


def curve_order(run: Downstream) -> list[str]:
    """Return the reward models by their value at the largest k, the best first."""
    values = of_rewards(run, shown_metric(run))
    return sorted(values, key=lambda name: -inf if (value := values[name].value) is None else value, reverse=True)


def of_rewards(run: Downstream, metric: str) -> dict[str, Estimate]:
    """Return a metric of each reward model at the largest k."""
    last = run.result.sampling.sizes[-1]
    return {model: run.estimate(metric, model=model, k=last) for model in run.result.rewards}


def shown_metric(run: Downstream) -> str:
    """Return the metric that reports show: `outcome`, or `promised` without a judge."""
    return "promised" if run.result.outcome is None else "outcome"


def level_note(run: Downstream) -> str:
    """Describe the outcome of an optimized policy before and after optimization, in one sentence."""
    record, gain, end = run.result.optimization or {}, run.estimate("outcome_gain"), run.estimate("outcome")
    algorithm = _algorithm(run)
    steps = f"{plural(record.get('steps', 0), 'step')} of {algorithm}" if algorithm else "a training elsewhere"
    warnings = "".join(f" {warning}" for warning in record.get("warnings", ()))
    if end.value is None:
        return f"{steps}; the policy's answers were not judged.{warnings}"
    start = run.estimate("outcome", policy=START).value
    before = "" if start is None else f"from {three_digits(start)} "
    change_text = f" ({with_interval(gain, change)})" if gain.value is not None else ""
    same = SAME_PROMPTS[record.get("judged_on_the_same_prompts")]
    return f"{before}to {three_digits(end.value)}{change_text} in {steps}.{same}{warnings}"


def _algorithm(run: Downstream) -> str:
    """The algorithm that optimized the policy; "" if it was trained elsewhere."""
    settings = (run.result.optimization or {}).get("settings")
    return "" if settings is None else str(settings["options"]["algorithm"]).upper()


def downstream_notes(run: Downstream) -> list[str]:
    """Write the notes on the table, a sentence or two each."""
    parts = (_outcome_notes, people_notes, _curve_notes, _sampling_notes, _reward_notes)
    return [note for part in parts for note in part(run)]


def _outcome_notes(run: Downstream) -> Iterator[str]:
    outcome, rewards, sampled = run.result.outcome, run.result.rewards, run.verb == "best-of-n"
    if not sampled:
        yield from (f"Optimized against {name}: {level_note(run)}" for name in rewards)
    if outcome is None:
        if sampled:
            yield "Not judged: gains are the reward models' own estimates, in standard deviations within prompts."
        return
    level = run.estimate("outcome")
    if level.value is not None and sampled:
        yield f"The policy by itself: {with_interval(level, three_digits)}, over {plural(level.n or 0, 'prompt')}."
    yield f"Values, judged by {outcome.judge.name}: {outcome.scale}."
    if rewards and sampled:
        expectation = outcome.judged and _complete(run)
        over = "in expectation over all sets of k candidates" if expectation else "of the first k candidates"
        intervals = f"with {CONFIDENCE:.0%} intervals over prompts or users"
        yield f"Best of k {over}. Gain: best of the largest k minus the policy by itself, {intervals}."
    yield from invalid_notes(run)
    gains = {name: one.n or 0 for name, one in of_rewards(run, "outcome_gain").items()}
    fewer = ", ".join(f"{name} {count:,}" for name, count in gains.items() if 0 < count < (level.n or 0))
    if fewer:
        yield f"The gain is over those of the {level.n or 0:,} prompts where both have a value: {fewer}."


def invalid_notes(run: Downstream) -> Iterator[str]:
    """Count the candidates whose judgment cannot be read, and say how that biases the best of k."""
    outcome = run.result.outcome
    if outcome is not None and outcome.invalid:
        reasons = _counts(outcome.invalid_reasons)
        yield f"{outcome.invalid:,} of {outcome.judged:,} candidates have no valid value and are excluded: {reasons}."
        if run.verb == "best-of-n" and _complete(run):
            yield "Best of k may therefore be biased: it averages only sets whose best candidate has a value."


def _counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} ({count:,})" for reason, count in list(reasons.items())[:NAMED])


def _complete(run: Downstream) -> bool:
    agreements = (run.estimate("rank_correlation", model=model) for model in run.result.rewards)
    return any(one.value is not None for one in (*agreements, *of_rewards(run, "realized").values()))


def _curve_notes(run: Downstream) -> Iterator[str]:
    """Whether more selection made the outcome worse: over-optimization (Gao et al., 2023)."""
    last = run.result.sampling.sizes[-1]
    for name in run.names("model", "cyclic_triples"):
        share = with_interval(run.estimate("cyclic_triples", model=name))
        cycles = f"{share}% of triples without a tie are cycles"
        yield f"{name} only compares: a reward is a mean probability of being better; {cycles}."
    for row in run.metrics.filter(metric="since_best").iter_rows(named=True):
        if row["high"] is not None and row["high"] < 0:
            fall = with_interval(Estimate(row["value"], row["low"], row["high"]), change)
            yield f"{row['model']} is over-optimized: from best of {row['k']} to {last} the outcome changes by {fall}."
    if run.verb == "best-of-n" and run.result.outcome is not None:
        realized = of_rewards(run, "realized")
        gains = [
            f"{model} {signed(gain)} of {two_digits(promise.value)}"
            for model, promise in of_rewards(run, "promised").items()
            if promise.value is not None and (gain := realized[model].value) is not None
        ]
        if gains:
            units = "in standard deviations within prompts"
            yield f"Realized of promised gain at best of {last}, {units}: {', '.join(gains)}."
            yield "Agreement: mean rank correlation of reward and outcome within prompts."


def _sampling_notes(run: Downstream) -> Iterator[str]:
    sampling = run.result.sampling
    candidates, lost = sum(sampling.outcomes.values()), sum(sampling.reasons.values())
    if truncated := sampling.outcomes.get("length", 0):
        most = f"{run.config.sampling.max_tokens:,} tokens"
        yield f"{truncated:,} of {candidates:,} candidates were truncated at {most}, and are judged as they are."
    if lost:
        yield f"{lost:,} of {candidates:,} candidates have no text and are never selected: {_counts(sampling.reasons)}."
    if sampling.without_text:
        ids = list_names(sampling.without_text)
        yield f"{len(sampling.without_text):,} of {sampling.prompts:,} prompts have no candidates (ids {ids})."
    if not sampling.seeded:
        yield "Samples were requested without a seed; only the recorded calls can be replayed."


def _reward_notes(run: Downstream) -> Iterator[str]:
    for name, rewarded in run.result.rewards.items():
        if rewarded.missing:
            reasons = _counts(rewarded.scoring.invalid_reasons)
            why = f" ({reasons})" if reasons else ""
            yield f"{name}: {rewarded.missing:,} candidates have no reward and are never selected{why}."
        if rewarded.identical:
            where = f"{rewarded.identical:,} of {run.result.sampling.prompts:,} prompts"
            yield f"{name}: in {where} all candidates have the same reward, so chance or their order selects."


def people_notes(run: Downstream) -> Iterator[str]:
    """Describe the agreement and the position bias of the people who compared answers."""
    agreement, alpha, ties, first = (run.estimate(name) for name in ("agreement", "alpha", "alike", "share_of_first"))
    if ties.n:
        kappa = "" if alpha.value is None else f" (Krippendorff's alpha {alpha.value:.2f})"
        agree = ""
        if agreement.n:
            percent_agreed = with_interval(agreement, whole_percent)
            agree = f"agree on {percent_agreed}% of {agreement.n:,} comparisons with two raters{kappa}, "
        yield (
            f"Raters {agree}call {100 * (ties.value or 0):.0f}% ties, and of the others prefer the answer shown first "
            f"in {with_interval(first, whole_percent) or DASH}%."
        )


def finding_of(run: Downstream) -> str:
    """State the effect of the reward models or of the optimization, with its interval, in one sentence."""
    policy, last = Path(run.result.policy.name).name, run.result.sampling.sizes[-1]
    if run.verb == "optimize":
        return f"{policy}, optimized against {', '.join(run.result.rewards)}: {level_note(run)}"
    if not run.result.rewards:
        level = with_interval(run.estimate("outcome"), three_digits)
        return f"The answers of {policy} by themselves have an outcome of {level or DASH}."
    metric = "outcome_gain" if run.result.outcome is not None else "promised"
    values = of_rewards(run, metric)
    effects = ", ".join(f"{name} {with_interval(values[name], change) or DASH}" for name in curve_order(run))
    if run.result.outcome is None:
        return f"The reward models promise from the best of {last} answers of {policy}: {effects}."
    what = KEYS[run.config.outcome.measure]
    return f"The best of {last} answers of {policy} instead of one changes its {what} by: {effects}."


def report_downstream(runs: Sequence[Downstream]) -> Report:
    """Report directories of `best-of-n` and `optimize`; JSON and CSV have the long frame of their numbers."""
    tables = outcome_tables(runs)
    notes = [" ".join([f"{run.path}: {finding_of(run)}", *people_notes(run), *invalid_notes(run)]) for run in runs]
    if tables:
        judged = [run.result.outcome for run in runs if run.result.outcome is not None]
        notes += dict.fromkeys(f"Values, judged by {one.judge.name}: {one.scale}." for one in judged)
    last = {table.columns[-1].text for table in tables}
    notes += [note for heading, note in ((RANK, RANKED), (PROMPTS, UNEVEN)) if heading in last]
    return Report(tables, notes, long_frame((run.path, run.metrics) for run in runs))


def outcome_tables(runs: Sequence[Downstream]) -> list[Table]:
    """Make a table for each judged directory of `best-of-n`, and one for those of `optimize` that share a policy.

    Directories of `optimize` share a table if they differ in the reward model only.
    """
    groups: dict[str, list[Downstream]] = {}
    for run in runs:
        result = run.result
        if result.outcome is not None and any(_outcome(run, name).value is not None for name in result.rewards):
            groups.setdefault(str(run.path) if run.verb == "best-of-n" else _settings(run), []).append(run)
    return [_table(own) for own in groups.values()]


def _outcome(run: Downstream, name: str, config: str | None = None) -> Estimate:
    """The outcome of the policy optimized against a reward model, or of the largest best of k by it."""
    if run.verb == "optimize":
        return run.estimate("outcome", config=config)
    return run.estimate("outcome", model=name, k=run.result.sampling.sizes[-1], config=config)


def _settings(run: Downstream) -> str:
    config, result = run.config, run.result
    settings = (result.optimization or {}).get("settings", {})
    judged = "" if result.outcome is None else f"{result.outcome.judge.name} {config.outcome.measure}"
    optimization = {name: value for name, value in settings.items() if name != "reward"}
    return repr((result.policy, config.data.digest, config.prompt, judged, optimization, config.seed))


def _table(runs: Sequence[Downstream]) -> Table:
    config, result = runs[0].config, runs[0].result
    configs = [*config.data.rows] if len(config.data.rows) > 1 else []
    places = (*configs, None)
    own = [(name, run) for run in runs for name in run.result.rewards]
    names = unique_names([name for name, _ in own], [run.path.name for _, run in own])
    outcomes = [[_outcome(run, name, place) for place in places] for name, run in own]
    levels = dict(zip(names, outcomes, strict=True))
    start = START if runs[0].verb == "optimize" else None
    base = [runs[0].estimate("outcome", config=place, policy=start) for place in places]
    overall = [own[-1] for own in levels.values()]
    prompts = {one.n for one in (base[-1], *overall) if one.value is not None}
    ranked = len(prompts) < 2
    rows = [Row(name, (*own, _rank(own[-1], overall) if ranked else own[-1].n)) for name, own in levels.items()]
    if base[-1].value is not None:
        rows.insert(0, Row("Base", (*base, None if ranked else base[-1].n), quiet=True))
    columns = [Column(text, four_digits, bounds=False, part=True) for text in first_words(configs)]
    all_configs = "Mean" if rule_of(config.benchmark.description).by_config else "All"
    columns += [Column(all_configs, four_digits), Column(RANK if ranked else PROMPTS)]
    method = f"best of {result.sampling.sizes[-1]} answers of"
    if result.optimization is not None:
        method = f"{_algorithm(runs[0]) or 'training elsewhere'} of"
    title = f"{config.benchmark.title}: {method} {Path(result.policy.name).name}, {KEYS[config.outcome.measure]}"
    return Table(title, "reward model", columns, rows)


def _rank(one: Estimate, every: Sequence[Estimate]) -> int | None:
    value = one.value
    return None if value is None else 1 + sum(other.value is not None and other.value > value for other in every)
