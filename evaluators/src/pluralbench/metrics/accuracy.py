"""What a run's decisions amount to: accuracies with intervals, and a count of everything that is no decision.

Accuracy is strict: the share of wins among wins, losses, ties and invalid ones. What was dropped for its length, and
pairs that the benchmark calls equal, are no part of it; each has its own count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import CONFIDENCE, RESAMPLES, Array, Resampled, estimate, mean_of, resample

from pluralbench.data.benchmarks import Benchmark
from pluralbench.results.decisions import OUTCOMES

COUNTED = ("win", "loss", "tie", "invalid")
NAMED = 20
Leaf = tuple[str, str | None]


def measure(benchmark: Benchmark, decisions: pl.DataFrame, *, seed: int) -> dict[str, Any]:
    """The metrics of a run: overall, over all items, and for each config with its sections and subsets.

    decisions: as `pluralbench.results.decisions` makes them. seed: of the bootstrap.
    """
    counted = decisions.filter(pl.col("outcome").is_in(COUNTED))
    leaves: list[Leaf] = list(counted.select("config", "subset").unique(maintain_order=True).iter_rows())
    pairs = resampled(counted, leaves, seed)
    configs = decisions["config"].unique(maintain_order=True).to_list()
    ours = [config for config in configs if config not in benchmark.outside]
    result: dict[str, Any] = {
        "confidence": CONFIDENCE,
        "resamples": RESAMPLES,
        "clusters": decisions["cluster"].n_unique(),
        "overall": {},
        "pooled": _cell(decisions.filter(pl.col("config").is_in(ours)), pairs, places_of(leaves, ours)),
        "configs": {config: _config(benchmark, decisions, config, leaves, pairs) for config in configs},
    }
    if benchmark.overall == "items":
        result["overall"] = {key: result["pooled"][key] for key in ("accuracy", "interval")}
    elif benchmark.by_category:
        result |= _by_category(benchmark, decisions, ours, result["configs"], seed)
    else:
        values = [config_values(benchmark, config, leaves, pairs) for config in ours]
        result["overall"] = estimate(mean_of(values), pairs.clusters(places_of(leaves, ours)))
    result["overall"]["rule"] = _rule(benchmark)
    return result


def _rule(benchmark: Benchmark) -> str:
    if benchmark.overall == "items":
        return "mean over all items"
    if benchmark.by_category:
        exact = "exact match" if benchmark.strict else "exact match by the legacy rules"
        return f"mean of accuracy and {exact}, each an unweighted mean over categories; unweighted over configs"
    inner = ", each the unweighted mean of its sections" if benchmark.sections else ""
    return f"unweighted mean of the configs{inner}"


def _config(
    benchmark: Benchmark, decisions: pl.DataFrame, config: str, leaves: Sequence[Leaf], pairs: Resampled
) -> dict[str, Any]:
    own = decisions.filter(config=config)
    cell = _cell(own, pairs, places_of(leaves, [config]))
    subsets = own["subset"].drop_nulls().unique(maintain_order=True).to_list()
    if subsets:
        cell["subsets"] = {
            subset: _cell(
                own.filter(subset=subset), pairs, [leaves.index((config, subset))] if (config, subset) in leaves else []
            )
            for subset in subsets
        }
    if benchmark.sections and config not in benchmark.apart:
        sections = section_values(benchmark, config, leaves, pairs)
        cell["sections"] = {
            name: estimate(
                values, pairs.clusters([leaves.index((config, s)) for s in weights if (config, s) in leaves])
            )
            for (name, values), weights in zip(sections.items(), benchmark.sections.values(), strict=True)
        }
        cell["mean_of_sections"] = estimate(
            config_values(benchmark, config, leaves, pairs), pairs.clusters(places_of(leaves, [config]))
        )
        known = {subset for section in benchmark.sections.values() for subset in section}
        cell["subsets_in_no_section"] = sorted(set(subsets) - known)
    return cell


def _by_category(
    benchmark: Benchmark,
    decisions: pl.DataFrame,
    configs: Sequence[str],
    cells: Mapping[str, dict[str, Any]],
    seed: int,
) -> dict[str, Any]:
    """The overall number of rankings, and accuracy and exact match as means over configs of their mean over categories.

    Cells of configs get these means (`by_category`, `exact_match_by_category`), and all cells their `exact_match` with
    the prompts that count for it.
    """
    from pluralbench_measures import rankings  # noqa: PLC0415 - torch comes with it

    scored = decisions.filter(pl.col("config").is_in(configs), pl.col("outcome") != "dropped")
    keys = ["config", "subset", "id", "cluster"]
    prompts = rankings.by_prompt(scored, keys, legacy=not benchmark.strict).filter(pl.col("counted") == 1)
    leaves: list[Leaf] = list(prompts.select("config", "subset").unique(maintain_order=True).iter_rows())
    leaf, cluster = _leaf_numbers(prompts, leaves), numbered(prompts["cluster"])
    right, of, won = (prompts[name].to_numpy().astype(np.float64) for name in ("right", "pairs", "exact"))
    pairs, exact = resample(leaf, cluster, right, seed, of), resample(leaf, cluster, won, seed)

    def exact_match(places: Sequence[int]) -> dict[str, Any]:
        found = estimate(exact.pooled(places), exact.clusters(places))
        return found | {"prompts": int(exact.counts[0, places].sum())}

    means: dict[str, list[Array]] = {"accuracy": [], "exact_match": []}
    for config in configs:
        places = places_of(leaves, [config])
        for values, source in zip(means.values(), (pairs, exact), strict=True):
            values.append(rankings.category_mean(source.wins[:, places], source.counts[:, places]))
        accuracy, matched = (values[-1] for values in means.values())
        cells[config].update(
            by_category=estimate(accuracy, pairs.clusters(places)),
            exact_match=exact_match(places),
            exact_match_by_category=estimate(matched, exact.clusters(places)),
        )
        for subset, cell in cells[config].get("subsets", {}).items():
            cell["exact_match"] = exact_match([place for place in places if leaves[place][1] == subset])
    clusters = prompts["cluster"].n_unique()
    return {
        "overall": estimate(rankings.overall(*means.values()), clusters),
        "rankings": {name: estimate(mean_of(values), clusters) for name, values in means.items()},
    }


def config_values(benchmark: Benchmark, config: str, leaves: Sequence[Leaf], pairs: Resampled) -> Array:
    """A config's accuracy, the mean of its sections where the benchmark has some: [1 + resamples]."""
    if benchmark.sections:
        # A section that is missing makes the mean missing: a mean of fewer sections would be of something else.
        return mean_of(list(section_values(benchmark, config, leaves, pairs).values()))
    return pairs.pooled(places_of(leaves, [config]))


def section_values(benchmark: Benchmark, config: str, leaves: Sequence[Leaf], pairs: Resampled) -> dict[str, Array]:
    """A config's sections, each the weighted mean of its subsets: [1 + resamples]."""
    sections = {}
    for name, weights in benchmark.sections.items():
        present = [
            (leaves.index((config, subset)), weight) for subset, weight in weights.items() if (config, subset) in leaves
        ]
        sections[name] = pairs.weighted([place for place, _ in present], [weight for _, weight in present])
    return sections


def places_of(leaves: Sequence[Leaf], configs: Sequence[str]) -> list[int]:
    """The places of the leaves of some configs."""
    return [place for place, (config, _) in enumerate(leaves) if config in configs]


def _cell(decisions: pl.DataFrame, pairs: Resampled, places: Sequence[int]) -> dict[str, Any]:
    counts = dict(decisions["outcome"].value_counts().iter_rows())
    named = {
        what: decisions.filter(rows).select("config", "id").unique(maintain_order=True)["id"].to_list()
        for what, rows in (
            ("invalid", pl.col("outcome") == "invalid"),
            ("truncated", pl.col("truncated")),
            ("dropped", pl.col("outcome") == "dropped"),
        )
    }
    n = sum(counts.get(outcome, 0) for outcome in COUNTED)
    margins = decisions["margin"].drop_nulls()
    return {
        "n": n,
        **{_plural(outcome): counts.get(outcome, 0) for outcome in OUTCOMES},
        "truncated": len(named["truncated"]),
        **estimate(pairs.pooled(places), pairs.clusters(places)),
        "accuracy_of_valid": counts.get("win", 0) / (n - counts.get("invalid", 0))
        if n > counts.get("invalid", 0)
        else None,
        "mean_margin": margins.mean(),
        "ids": {what: ids[:NAMED] for what, ids in named.items() if ids},
    }


def _plural(outcome: str) -> str:
    return {"win": "wins", "loss": "losses", "tie": "ties"}.get(outcome, outcome)


def resampled(counted: pl.DataFrame, leaves: Sequence[Leaf], seed: int) -> Resampled:
    """Decisions that count, resampled by cluster; `leaves` are all pairs of config and subset that they have."""
    won = (counted["outcome"] == "win").to_numpy().astype(np.float64)
    return resample(_leaf_numbers(counted, leaves), numbered(counted["cluster"]), won, seed)


def _leaf_numbers(rows: pl.DataFrame, leaves: Sequence[Leaf]) -> NDArray[np.int64]:
    place = {leaf: number for number, leaf in enumerate(leaves)}
    return np.array([place[row] for row in rows.select("config", "subset").iter_rows()], dtype=np.int64)


def numbered(names: pl.Series) -> NDArray[np.int64]:
    """A number for each name, from 0."""
    return names.rank("dense").cast(pl.Int64).to_numpy() - 1


def position_bias(decisions: pl.DataFrame) -> Mapping[str, Any]:
    """What a judge's verdicts owe to the order of the answers.

    decisions: with `verdict_chosen_first` and `verdict_rejected_first`, each "A", "B", "invalid" or null (not asked).
    """
    first = decisions.select(
        pl.concat([pl.col("verdict_chosen_first"), pl.col("verdict_rejected_first")]).alias("verdict")
    )["verdict"].drop_nulls()
    valid = first.filter(first.is_in(["A", "B"]))
    by_place = {
        "accuracy_chosen_first": _share(decisions["verdict_chosen_first"], "A"),
        "accuracy_chosen_second": _share(decisions["verdict_rejected_first"], "B"),
    }
    both = decisions.filter(pl.all_horizontal(pl.col("^verdict_.*_first$").is_in(["A", "B"])))
    a, b = by_place.values()
    return {
        "verdicts": len(first),
        "invalid_verdicts": len(first) - len(valid),
        "share_of_first": None if not len(valid) else valid.to_list().count("A") / len(valid),
        **by_place,
        # As the paper's own script counts: a verdict that cannot be parsed is taken for the first response.
        "accuracy_with_invalid_as_first": _share(
            pl.concat(
                [_as_first(decisions["verdict_chosen_first"], "A"), _as_first(decisions["verdict_rejected_first"], "B")]
            ),
            "right",
        ),
        "position_bias": None if a is None or b is None else abs(a - b),
        "asked_in_both_orders": both.height,
        "changed_with_the_order": both.filter(
            pl.col("verdict_chosen_first") == pl.col("verdict_rejected_first")
        ).height,
    }


def _as_first(verdicts: pl.Series, right: str) -> pl.Series:
    """For verdicts in one order, "right" or "wrong" where the invalid ones stand for the first response."""
    asked = verdicts.drop_nulls().replace("invalid", "A")
    return pl.Series(["right" if verdict == right else "wrong" for verdict in asked], dtype=pl.String)


def _share(verdicts: pl.Series, right: str) -> float | None:
    asked = verdicts.drop_nulls()
    return None if not len(asked) else asked.to_list().count(right) / len(asked)
