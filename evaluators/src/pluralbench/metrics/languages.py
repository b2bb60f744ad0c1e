"""What a model does across languages: where it drops from English, whether it keeps its mind, and in which languages.

M-RewardBench, section 5: the drop is the section's accuracy in a language minus that in English, on the same ids; label
consistency is Cohen's kappa between a model's own labels in a language and in English.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Array, Resampled, estimate, interval_of, mean_of
from pluralbench_schemas import LANGUAGES, Language

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.accuracy import COUNTED, Leaf, config_values, resampled, section_values

LABELS = ("win", "loss", "tie")
MEAN = "mean of sections"
# One language in two scripts, of which the paper's variance takes the mean first.
CHINESE = ("zho_Hans", "zho_Hant")
GROUPS = ("resource", "class", "family", "script")


def measure_languages(benchmark: Benchmark, decisions: pl.DataFrame, *, seed: int) -> dict[str, Any]:
    """`{"languages": ...}` for a benchmark whose configs are languages, else nothing.

    reference: the config in English, None where the data has none, and then there is no drop and no consistency.
    variance: of the languages' accuracies in per cent, with n - 1, both Chinese scripts averaged first.
    by_language: for each language the ids it shares with English, the drop by section (a difference of shares, with
    its interval) and the consistency. sections, drop, consistency: means over languages. groups: mean accuracy by
    resource level, Joshi's class, family and script.
    """
    if benchmark.reference is None:
        return {}
    english = benchmark.reference.config
    configs = decisions["config"].unique(maintain_order=True).to_list()
    codes = [config for config in configs if config not in benchmark.outside]
    own = decisions.filter(pl.col("config").is_in(codes))
    original = decisions.filter(config=english)
    counted = own.filter(pl.col("outcome").is_in(COUNTED))
    # A drop is measured on the ids that both have, so English is there once for each language.
    shared = [_shared(counted.filter(config=code), original, code) for code in codes] if original.height else []
    every = pl.concat([counted, *shared])
    leaves: list[Leaf] = list(every.select("config", "subset").unique(maintain_order=True).iter_rows())
    pairs = resampled(every, leaves, seed)
    drops = {code: _drop(benchmark, code, leaves, pairs) for code in codes} if shared else {}
    labels = {code: consistency(own.filter(config=code), original) for code in codes} if shared else {}
    sections = {code: section_values(benchmark, code, leaves, pairs) for code in codes}
    values = {code: config_values(benchmark, code, leaves, pairs) for code in codes}
    return {
        "languages": {
            "reference": english if original.height else None,
            "variance": _variance(values),
            "by_language": {
                code: {
                    "ids": counted.filter(config=code)["id"].n_unique()
                    if not shared
                    else every.filter(config=_ours(code))["id"].n_unique(),
                    "drop": {name: _difference(drop) for name, drop in drops.get(code, {}).items()},
                    "consistency": labels.get(code),
                }
                for code in codes
            },
            "sections": {
                name: estimate(mean_of([sections[code][name] for code in codes]), counted["cluster"].n_unique())
                for name in benchmark.sections
            },
            "drop": {
                name: _difference(mean_of([drops[code][name] for code in codes]))
                for name in (drops[codes[0]] if drops else ())
            },
            "consistency": _mean_consistency(labels),
            "groups": _groups(values, counted),
        }
    }


def _ours(code: str) -> str:
    return f"{code}, ids shared with English"


def _theirs(code: str) -> str:
    return f"English, ids shared with {code}"


def _shared(language: pl.DataFrame, original: pl.DataFrame, code: str) -> pl.DataFrame:
    """A language's decisions and those in English, on the ids that both have, under names of their own."""
    counted = original.filter(pl.col("outcome").is_in(COUNTED))
    ours = language.join(counted.select("id").unique(), on="id", how="semi")
    # The subset is that of the language on both sides: English data may have it under another name, or not at all.
    subsets = ours.select("id", "subset").unique(subset="id")
    theirs = counted.drop("subset").join(subsets, on="id").select(ours.columns)
    named = [(ours, _ours(code)), (theirs, _theirs(code))]
    return pl.concat([frame.with_columns(config=pl.lit(name)) for frame, name in named])


def _drop(benchmark: Benchmark, code: str, leaves: Sequence[Leaf], pairs: Resampled) -> dict[str, Array]:
    """The drop by section and of the mean of sections: [1 + resamples] each."""
    ours, theirs = (
        section_values(benchmark, name, leaves, pairs) | {MEAN: config_values(benchmark, name, leaves, pairs)}
        for name in (_ours(code), _theirs(code))
    )
    return {name: ours[name] - theirs[name] for name in ours}


def _difference(values: Array) -> dict[str, Any]:
    if np.isnan(values[0]):
        return {"difference": None, "interval": None}
    return {"difference": float(values[0]), "interval": interval_of(values)}


def consistency(language: pl.DataFrame, original: pl.DataFrame) -> dict[str, Any]:
    """Cohen's kappa between the labels (chosen, rejected, tie) of the same ids in a language and in English.

    The interval is by kappa's asymptotic variance. kappa is None where it is undefined, as for a model that gives one
    label to all. left_out: ids whose decision in one of the two is no label.
    """
    both = language.select("id", "outcome").join(original.select("id", "outcome"), on="id", suffix="_english")
    valid = both.filter(pl.col("outcome").is_in(LABELS), pl.col("outcome_english").is_in(LABELS))
    kappa, interval = cohens_kappa(valid["outcome"].to_list(), valid["outcome_english"].to_list())
    return {"kappa": kappa, "interval": interval, "n": valid.height, "left_out": both.height - valid.height}


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> tuple[float | None, list[float] | None]:
    """Kappa of two raters' labels with its interval; None where it is undefined, since both give one same label."""
    from statsmodels.stats.inter_rater import cohens_kappa as kappa_of  # noqa: PLC0415 - two seconds that `--help` saves

    table = np.zeros((len(LABELS), len(LABELS)))
    for one, other in zip(first, second, strict=True):
        table[LABELS.index(one), LABELS.index(other)] += 1
    shares = table / max(table.sum(), 1)
    if float(shares.sum(0) @ shares.sum(1)) >= 1 or not table.any():
        return None, None
    with np.errstate(invalid="ignore"):
        found = kappa_of(table)
    bounds = [float(found.kappa_low), float(found.kappa_upp)]
    return float(found.kappa), bounds if np.isfinite(bounds).all() else None


def _mean_consistency(labels: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    kappas = [entry["kappa"] for entry in labels.values() if entry["kappa"] is not None]
    if not kappas:
        return None
    spread = float(np.std(kappas, ddof=1)) if len(kappas) > 1 else None
    return {"mean": float(np.mean(kappas)), "sd": spread, "languages": len(kappas)}


def _variance(values: Mapping[str, Array]) -> float | None:
    accuracies = {code: float(value[0]) for code, value in values.items()}
    if all(code in accuracies for code in CHINESE):
        mean = sum(accuracies.pop(code) for code in CHINESE) / len(CHINESE)
        accuracies["zho"] = mean
    found = [100 * value for value in accuracies.values()]
    return float(np.var(found, ddof=1)) if len(found) > 1 and not np.isnan(found).any() else None


def _groups(values: Mapping[str, Array], counted: pl.DataFrame) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, list[str]]] = {name: {} for name in GROUPS}
    for code in values:
        language = LANGUAGES.get(code)
        if language is not None:
            for name, value in _dimensions(language).items():
                groups[name].setdefault(value, []).append(code)
    return {
        name: {
            value: {"languages": codes}
            | estimate(
                mean_of([values[code] for code in codes]),
                counted.filter(pl.col("config").is_in(codes))["cluster"].n_unique(),
            )
            for value, codes in sorted(members.items())
        }
        for name, members in groups.items()
    }


def _dimensions(language: Language) -> dict[str, str]:
    return {
        "resource": language.resource,
        "class": str(language.joshi),
        "family": language.family,
        "script": language.script,
    }
