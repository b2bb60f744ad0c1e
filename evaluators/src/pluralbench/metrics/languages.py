"""Metrics across languages: drops from English, consistency with English, and means by kind of language.

M-RewardBench, section 5. A drop is a section's accuracy in a language minus that in English, on the same ids. Label
consistency is Cohen's kappa between a model's own labels in a language and in English.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl
from pluralbench_measures.agreement import cohens_kappa
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of
from pluralbench_measures.intervals import Perturbed, Strata, perturb
from pluralbench_schemas import LANGUAGES

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.accuracy import (
    counted_leaves,
    leaf_indices,
    pooled,
    pooled_strata,
    section_values,
    separate_strata,
    sums_by_leaf,
)
from pluralbench.metrics.credits import COUNTED
from pluralbench.metrics.decided import Decided, Leaf
from pluralbench.metrics.metric import Metric, MetricKey, Numbers

READ = (
    "config",
    "id",
    "subset",
    "cluster",
    "outcome",
)  # columns of decisions; English rows are repeated for each language
LABELS = ("win", "loss", "tie")
# One language in two scripts; the paper averages them before it takes the variance.
CHINESE = ("zho_Hans", "zho_Hant")
KINDS = {"resource": "resource", "joshi_class": "joshi", "family": "family", "script": "script"}
"""Dimensions that are kinds of languages, and the field of `Language` that defines them."""
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
    if original.height:
        codes, counted = _languages(benchmark, decisions)
        # A drop is computed on shared ids, so English is needed once for each language.
        shared = (_shared(counted.filter(config=code), original) for code in codes)
        yield from _drops(benchmark, codes, Decided(benchmark, counted).leaves, shared)
        yield from _consistency({code: decisions.filter(config=code) for code in codes}, original)


def language_accuracies(decided: Decided) -> Numbers:
    """Yield the mean of each section over languages, and means by resource level, Joshi's class, family and script.

    The first number is the variance (with n - 1) of the languages' accuracies in percent; the two Chinese scripts are
    averaged first.
    """
    benchmark = decided.benchmark
    if benchmark.reference is None:
        return
    codes, counted = _languages(benchmark, decided.decisions.select(READ))
    leaves = Decided(benchmark, counted).leaves
    perturbed = perturb(_sums(counted, leaves, counted))
    languages = perturbed.sources[0]
    sections = {code: section_values(benchmark, code, leaves, languages) for code in codes}
    values = {code: _language_accuracy(benchmark, code, own, leaves, languages) for code, own in sections.items()}
    yield MetricKey("variance"), Estimate(_variance(values), n=len(codes))
    for name, weights in benchmark.sections.items():
        mean = mean_of([sections[code][name] for code in codes])
        inside = [at for at in counted_leaves(benchmark, leaves, codes) if leaves[at][1] in weights]
        n, clusters = languages.decisions(inside), languages.clusters(inside)
        strata, stratified = separate_strata(inside), bool(benchmark.strata)
        estimate = perturbed.share(mean, strata, n, clusters, stratified=stratified)
        yield MetricKey("accuracy", section=name), estimate
    yield from _kinds(benchmark, values, leaves, perturbed)


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
    """Return the languages behind the overall number, and their counted decisions."""
    codes = [code for code in decisions["config"].unique(maintain_order=True) if code not in benchmark.outside_overall]
    return codes, decisions.filter(pl.col("config").is_in(codes), pl.col("outcome").is_in(COUNTED))


def _language_accuracy(
    benchmark: Benchmark, code: str, sections: Mapping[str, Array], leaves: list[Leaf], pairs: Resampled
) -> Array:
    """Compute a language's accuracy: the mean of its sections, if the benchmark has any."""
    if sections:
        return mean_of(list(sections.values()))
    return pooled(benchmark, leaves, pairs, leaf_indices(leaves, [code]))


def _strata(benchmark: Benchmark, leaves: list[Leaf], codes: list[str]) -> Strata:
    """Return the strata of a mean over languages."""
    every = [counted_leaves(benchmark, leaves, [code]) for code in codes]
    if benchmark.sections:
        return separate_strata(place for places in every for place in places)
    return [stratum for places in every for stratum in pooled_strata(benchmark, places)]


def _sums(rows: pl.DataFrame, leaves: list[Leaf], every: pl.DataFrame) -> Sums:
    return sums_by_leaf(rows, leaves, rows["outcome"] == "win", clusters=every["cluster"])


def _shared(language: pl.DataFrame, original: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the decisions in a language and in English on their shared ids, both under the language's name."""
    counted = original.filter(pl.col("outcome").is_in(COUNTED))
    ours = language.join(counted.select("id").unique(), on="id", how="semi")
    # Both sides get the language's subset: English data may lack it or name it differently.
    places = ours.select("id", "config", "subset").unique(subset="id")
    return ours, counted.drop("config", "subset").join(places, on="id").select(ours.columns)


def _drops(
    benchmark: Benchmark,
    codes: list[str],
    leaves: list[Leaf],
    shared: Iterable[tuple[pl.DataFrame, pl.DataFrame]],
) -> Numbers:
    rows = [pl.concat(side) for side in zip(*shared, strict=True)]
    perturbed = perturb(*(_sums(own, leaves, pl.concat(rows)) for own in rows))
    del rows  # twice as large as all decisions
    ours, theirs = perturbed.sources
    names: list[str | None] = [None, *benchmark.sections]
    drops: dict[str | None, list[Array]] = {name: [] for name in names}
    for code in codes:
        places = counted_leaves(benchmark, leaves, [code])
        sides: list[dict[str | None, Array]] = []
        for pairs in (ours, theirs):
            sections = section_values(benchmark, code, leaves, pairs)
            sides.append({None: _language_accuracy(benchmark, code, sections, leaves, pairs)} | sections)
        for name in names:
            drop = sides[0][name] - sides[1][name]
            drops[name].append(drop)
            key = MetricKey("drop", code, section=name)
            inside = [at for at in places if name is None or leaves[at][1] in benchmark.sections[name]]
            strata = _strata(benchmark, leaves, [code]) if name is None else separate_strata(inside)
            yield key, perturbed.difference(drop, strata, ours.decisions(inside), ours.clusters(inside))
    for name, values in drops.items():
        key = MetricKey("drop", section=name)
        inside = [
            at
            for at in counted_leaves(benchmark, leaves, codes)
            if name is None or leaves[at][1] in benchmark.sections[name]
        ]
        strata = _strata(benchmark, leaves, codes) if name is None else separate_strata(inside)
        yield key, perturbed.difference(mean_of(values), strata, len(codes), ours.clusters(inside))


def _consistency(languages: Mapping[str, pl.DataFrame], original: pl.DataFrame) -> Numbers:
    """Yield Cohen's kappa between the labels (chosen, rejected, tie) of shared ids in a language and in English.

    It is missing if undefined, for example for a model that gives all ids the same label.
    """
    kappas = []
    for code, decisions in languages.items():
        both = _join_english(decisions.select("id", "outcome", "cluster"), original)
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


def _variance(values: Mapping[str, Array]) -> float | None:
    accuracies = {code: float(value[0]) for code, value in values.items()}
    if all(code in accuracies for code in CHINESE):
        mean = sum(accuracies.pop(code) for code in CHINESE) / len(CHINESE)
        accuracies["zho"] = mean
    percents = [100 * value for value in accuracies.values()]
    return float(np.var(percents, ddof=1)) if len(percents) > 1 and not np.isnan(percents).any() else None


def _kinds(benchmark: Benchmark, values: Mapping[str, Array], leaves: list[Leaf], perturbed: Perturbed) -> Numbers:
    """Yield the mean accuracy and the number of languages of each kind."""
    languages = {code: LANGUAGES[code] for code in values if code in LANGUAGES}
    for kind, field in KINDS.items():
        members: dict[str, list[str]] = {}
        for code, language in languages.items():
            members.setdefault(str(getattr(language, field)), []).append(code)
        for name, codes in sorted(members.items()):
            places = counted_leaves(benchmark, leaves, codes)
            mean = mean_of([values[code] for code in codes])
            n, clusters = perturbed.sources[0].decisions(places), perturbed.sources[0].clusters(places)
            strata, stratified = _strata(benchmark, leaves, codes), bool(benchmark.strata)
            estimate = perturbed.share(mean, strata, n, clusters, stratified=stratified)
            key = MetricKey("accuracy").by(kind, name)
            yield key, estimate
            yield key._replace(metric="languages"), Estimate(float(len(codes)))


METRICS = (
    Metric(
        "drop",
        "difference",
        "Accuracy minus that of the same items in English.",
        ("", "config", "config section", "section"),
        title="against English",
        compute=language_numbers,
        in_tables=True,
        note="Against English: accuracy minus that of the same items in English, in points. Kappa: agreement of the "
        "labels with those in English.",
    ),
    Metric(
        "kappa",
        "correlation",
        "Cohen's kappa of the labels in a language and in English; over languages the mean.",
        ("", "config"),
        compute=language_numbers,
        in_tables=True,
    ),
    Metric("kappa_sd", "number", "Standard deviation of kappa by language.", compute=language_numbers),
    Metric(
        "kappa_left_out",
        "count",
        "Ids without a label in one of the two languages.",
        ("config",),
        compute=language_numbers,
    ),
    Metric(
        "variance",
        "points squared",
        "Variance of the languages' accuracies in percent; the two Chinese scripts count once.",
        title="variance (points²)",
        compute=language_accuracies,
    ),
    Metric("languages", "count", "Languages of a kind.", tuple(KINDS), compute=language_accuracies),
)
