"""Metrics across languages: drops from English, consistency with English, and means by kind of language.

M-RewardBench, section 5. A drop is a section's accuracy in a language minus that in English, on the same ids. Label
consistency is Cohen's kappa between a model's own labels in a language and in English.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from pluralbench_measures.agreement import cohens_kappa
from pluralbench_measures.bootstrap import Estimate, Resampled, Sums
from pluralbench_measures.intervals import linearize
from pluralbench_schemas import LANGUAGES

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import COUNTED
from pluralbench.data.fields import Cell
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import ResampledAccuracy, config_accuracies, mean_accuracy
from pluralbench.metrics.accuracy import sums_by_cell
from pluralbench.metrics.decided import Decided, cells_of
from pluralbench.metrics.metric import Metric, Numbers, computed_by

READ = ["config", "id", "subset", "cluster", "outcome"]  # English rows are repeated for each language
LABELS = ("win", "loss", "tie")
# One language in two scripts; the paper averages them before it takes the variance.
CHINESE = ("zho_Hans", "zho_Hant")
KINDS = {"resource": "resource", "joshi_class": "joshi", "family": "family", "script": "script"}
"""Dimensions that are kinds of languages, and the field of `Language` that defines them."""
Accuracies = dict[str, ResampledAccuracy]
"""Accuracies by language."""
ARE_LABELS = pl.col("outcome").is_in(LABELS) & pl.col("outcome_english").is_in(LABELS)


def language_numbers(decided: Decided) -> Numbers:
    """Yield drops and label consistency for benchmarks whose configs are languages; none without English.

    Each language has `drop`, overall and by section: the paired difference of accuracies on the ids that it shares with
    English. It also has `kappa`, and `kappa_left_out`, the number of ids without a label in one of the two languages.
    Over languages: the means of both, and `kappa_sd`.
    """
    benchmark = decided.benchmark
    if benchmark.reference is None:
        return
    decisions = decided.decisions.select(READ)
    original = decisions.filter(config=benchmark.reference.config)
    if original.is_empty():
        return
    codes, counted = _languages(benchmark, decisions)
    yield from _drops(benchmark, codes, counted, original)
    yield from _consistency(codes, decisions, original)


def language_accuracies(decided: Decided) -> Numbers:
    """Yield the mean of each section over languages, and means by resource level, Joshi's class, family and script.

    The first number is the variance (with n - 1) of the languages' accuracies in percent; the two Chinese scripts are
    averaged first.
    """
    benchmark = decided.benchmark
    if benchmark.reference is None:
        return
    codes, counted = _languages(benchmark, decided.decisions.select(READ))
    cells = cells_of(counted)
    linearized = linearize(_sums(counted, cells, counted))
    [source] = linearized.sources
    accuracies = _accuracies(benchmark, codes, cells, source)
    whole = accuracies[None]
    yield MetricKey("variance"), Estimate(_variance(whole), n=len(codes))
    groups = {MetricKey("accuracy", section=name): accuracies[name] for name in benchmark.sections}
    groups |= {MetricKey("accuracy").by(kind, name): codes for kind, name, codes in _kinds(whole)}
    for key, parts in groups.items():
        yield key, mean_accuracy(key, list(parts.values()), source).estimate(linearized, benchmark)
        if key.section is None:
            yield key._replace(metric="languages"), Estimate(float(len(parts)))


def with_english_outcomes(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the decisions in other languages with the English outcome of the same id as `outcome_english`.

    Ids without a decision in English are left out. The result is empty for a benchmark in one language.
    """
    if benchmark.reference is None:
        return decisions.clear().with_columns(outcome_english="outcome")
    others = decisions.filter(~pl.col("config").is_in(benchmark.outside_overall))
    return _join_english(others, decisions.filter(config=benchmark.reference.config))


def _join_english(language: pl.DataFrame, original: pl.DataFrame) -> pl.DataFrame:
    return language.join(original.select("id", outcome_english="outcome"), on="id", how="inner", maintain_order="left")


def _languages(benchmark: Benchmark, decisions: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    codes = [code for code in decisions["config"].unique(maintain_order=True) if code not in benchmark.outside_overall]
    return codes, decisions.filter(pl.col("config").is_in(codes), pl.col("outcome").is_in(COUNTED))


def _accuracies(
    benchmark: Benchmark, codes: Sequence[str], cells: Sequence[Cell], source: Resampled
) -> dict[str | None, Accuracies]:
    parts: dict[str | None, Accuracies] = {name: {} for name in (None, *benchmark.sections)}
    for code in codes:
        for one in config_accuracies(benchmark, code, cells, source):
            parts[one.key.section][code] = one
    return parts


def _sums(rows: pl.DataFrame, cells: list[Cell], every: pl.DataFrame) -> Sums:
    return sums_by_cell(rows, cells, rows["outcome"] == "win", clusters=every["cluster"])


def _shared(others: pl.DataFrame, original: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the decisions in each language and in English on their shared ids, both under the language's name."""
    counted = original.filter(pl.col("outcome").is_in(COUNTED))
    ours = others.join(counted.select("id").unique(), on="id", how="semi")
    # Both sides get the language's subset: English data may lack it or name it differently.
    places = ours.select("id", "config", "subset").unique(subset=["id", "config"])
    return ours, counted.drop("config", "subset").join(places, on="id").select(ours.columns)


def _drops(benchmark: Benchmark, codes: Sequence[str], counted: pl.DataFrame, original: pl.DataFrame) -> Numbers:
    # A drop is computed on shared ids, so English is needed once for each language.
    rows, cells = _shared(counted, original), cells_of(counted)
    linearized = linearize(*(_sums(own, cells, pl.concat(rows)) for own in rows))
    del rows  # twice as large as all decisions
    ours, theirs = (_accuracies(benchmark, codes, cells, source) for source in linearized.sources)
    for name, parts in ours.items():
        for code, one in parts.items():
            parts[code] = replace(one, values=one.values - theirs[name][code].values)
    for code in codes:
        for name, parts in ours.items():
            key, one = MetricKey("drop", code, section=name), parts[code]
            yield key, linearized.difference(one.values, one.strata, one.n, one.clusters)
    for name, parts in ours.items():
        mean = mean_accuracy(MetricKey("drop", section=name), list(parts.values()), linearized.sources[0])
        yield mean.key, linearized.difference(mean.values, mean.strata, len(codes), mean.clusters)


def _consistency(codes: Sequence[str], decisions: pl.DataFrame, original: pl.DataFrame) -> Numbers:
    """Yield Cohen's kappa between the labels (chosen, rejected, tie) of shared ids in a language and in English.

    It is missing if undefined, for example for a model that gives all ids the same label.
    """
    kappas = []
    shared = _join_english(decisions.select("config", "id", "outcome", "cluster"), original)
    by_code = shared.partition_by("config", as_dict=True)
    for code in codes:
        both = by_code.get((code,), shared.clear())
        valid = both.filter(ARE_LABELS)
        kappa = cohens_kappa(*(valid[name].to_list() for name in ("outcome", "outcome_english", "cluster")))
        yield MetricKey("kappa", code), kappa
        yield MetricKey("kappa_left_out", code), Estimate(float(both.height - valid.height))
        if kappa.value is not None:
            kappas.append(kappa.value)
    if kappas:
        yield MetricKey("kappa"), Estimate(float(np.mean(kappas)), n=len(kappas))
        deviation = float(np.std(kappas, ddof=1)) if len(kappas) > 1 else None
        yield MetricKey("kappa_sd"), Estimate(deviation, n=len(kappas))


def _variance(accuracies: Accuracies) -> float | None:
    values = {code: float(one.values[0]) for code, one in accuracies.items()}
    if all(code in values for code in CHINESE):
        values["zho"] = sum(values.pop(code) for code in CHINESE) / len(CHINESE)
    percents = [100 * value for value in values.values()]
    return float(np.var(percents, ddof=1)) if len(percents) > 1 and not np.isnan(percents).any() else None


def _kinds(accuracies: Accuracies) -> Iterator[tuple[str, str, Accuracies]]:
    for kind, field in KINDS.items():
        kinds = {code: str(getattr(LANGUAGES[code], field)) for code in accuracies if code in LANGUAGES}
        for name in sorted(set(kinds.values())):
            yield kind, name, {code: accuracies[code] for code, own in kinds.items() if own == name}


_LANGUAGE = ("", "config")
METRICS = (
    *computed_by(
        language_numbers,
        Metric(
            "drop",
            "difference",
            "Accuracy minus that of the same items in English.",
            ("", "config", "config section", "section"),
            title="against English",
            in_tables=True,
            terms={
                "against English": "accuracy minus that of the same items in English, in points.",
                "kappa": "agreement of the labels with those in English.",
            },
        ),
        Metric("kappa", "correlation", "Cohen's kappa of labels with English; the mean.", _LANGUAGE, in_tables=True),
        Metric("kappa_sd", "number", "Standard deviation of kappa by language."),
        Metric("kappa_left_out", "count", "Ids without a label in one of the two languages.", _LANGUAGE[1:]),
    ),
    *computed_by(
        language_accuracies,
        Metric("variance", "points squared", "Variance of the accuracies of languages.", title="variance (points²)"),
        Metric("languages", "count", "Languages of a kind.", tuple(KINDS)),
    ),
)
