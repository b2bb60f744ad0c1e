"""What could be wrong with pairs although each of them is valid: length, leaks, repetition, and what was dropped."""

from typing import Any

import polars as pl
from pluralbench_release.audit import PairLimits, check_limits, limited, near_duplicates, pair_figures, word_count

SHORT = 20  # words below which an answer can hardly be both good and personal


def audit(pairs: pl.DataFrame, drops: pl.DataFrame, *, questions: int, word_limit: int) -> dict[str, Any]:
    """Figures about `pairs` (columns of `PersonalizedPairs` and `config`), JSON.

    questions: how many the sources had, drops of the source's own posts aside. What a scorer could cheat on is as in
    `pluralbench_release.audit.pair_figures`; what it could repeat are the words of the aspects.
    """
    answers = pairs["chosen"].to_list(), pairs["rejected"].to_list()
    titles = [" ".join(aspect["aspect"] for aspect in aspects) for aspects in pairs["rubric_aspects"].to_list()]
    words = [[word_count(text) for text in pair] for pair in zip(*answers, strict=True)]
    found = pair_figures(*answers, titles)
    near = {"questions": near_duplicates(pairs["question"].to_list()), **found["near_duplicates"]}
    return found | {
        "questions": questions,
        "pairs_by_config": dict(pairs.group_by("config", maintain_order=True).len().iter_rows()),
        "drops": drop_counts(drops),
        "short": sum(count < SHORT for pair in words for count in pair),
        "over_limit": sum(max(pair) > word_limit for pair in words),
        "near_duplicates": near,
        "profile_posts": spread(pairs["profile"].list.len()),
        "aspects_per_question": _rounded(pairs["rubric_aspects"].list.len().mean()),
        "by_config": config_figures(pairs),
    }


def config_figures(pairs: pl.DataFrame) -> list[dict[str, Any]]:
    """What the paper's table 4 has of each config, and how long posts and answers are; lengths in words.

    `questions`, each of another user; of all others the `mean` and the standard deviation (`sd`, None of a single one).
    """
    found = []
    for (config,), part in pairs.partition_by("config", as_dict=True, maintain_order=True).items():
        words = {
            f"{name}_words": pl.Series([word_count(text) for text in part[name].fill_null("")])
            for name in ("question", "narrative", "chosen", "rejected")
        }
        lengths = {"rubric_aspects": part["rubric_aspects"].list.len(), "profile_posts": part["profile"].list.len()}
        means = {
            name: {"mean": _rounded(values.mean()), "sd": None if part.height < 2 else _rounded(values.std())}
            for name, values in (lengths | words).items()
        }
        found.append({"config": str(config), "questions": part.height} | means)
    return found


def drop_counts(drops: pl.DataFrame) -> list[dict[str, Any]]:
    """How many drops (columns of `sources.loaded.DROPS`) there are of each config, step and reason."""
    return drops.group_by("config", "step", "reason", maintain_order=True).len("count").to_dicts()


def check(figures: dict[str, Any], limits: PairLimits) -> None:
    """Raise `pluralbench_release.audit.AuditFailed` naming every limit that the figures of `audit` break."""
    share = (figures["questions"] - figures["pairs"]) / figures["questions"]
    near = figures["near_duplicates"]
    check_limits(
        limited(figures) | {"max_drop_share": share, "max_near_duplicates": near["questions"] + near["chosen"]}, limits
    )


def spread(counts: pl.Series) -> dict[str, Any]:
    """The least, the median and the most of some counts."""
    return {"min": counts.min(), "median": _rounded(counts.median()), "max": counts.max()}


def _rounded(value: Any) -> float:
    return round(float(value), 4)
