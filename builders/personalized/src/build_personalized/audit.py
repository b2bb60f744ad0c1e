"""Audit the pairs of a build: length, overlap with the rubric, repetition, drops."""

from typing import Any

import polars as pl
from pluralbench_release import PairLimits
from pluralbench_release.audit import check_limits, limit_values, pair_figures, word_count
from pluralbench_release.similarity import near_duplicates

SHORT = 20  # words; a shorter answer can hardly be both good and personalized


def audit(pairs: pl.DataFrame, drops: pl.DataFrame, *, questions: int, word_limit: int) -> dict[str, Any]:
    """Compute the audit figures of a build, serializable as JSON.

    What a scorer could exploit is measured by `pluralbench_release.audit.pair_figures`, with the words of the aspects
    as the text that answers may repeat.

    Args:
        pairs: Pairs, columns of `PERSONALIZED_PAIRS` and `config`.
        drops: Dropped questions and posts, columns of `sources.loaded.DROPS`.
        questions: Number of questions in the sources, without the posts that a source dropped.
        word_limit: Maximum words of an answer, as the prompts state it.
    """
    answers = pairs["chosen"].to_list(), pairs["rejected"].to_list()
    titles = [" ".join(aspect["aspect"] for aspect in aspects) for aspects in pairs["rubric_aspects"].to_list()]
    words = [[word_count(text) for text in pair] for pair in zip(*answers, strict=True)]
    figures = pair_figures(*answers, titles)
    near = {"questions": near_duplicates(pairs["question"].to_list()), **figures["near_duplicates"]}
    return figures | {
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
    """Compute the statistics of the paper's table 4 for each config, with the standard deviation None for one question.

    Lengths are in words. Each question is by another user.
    """
    figures = []
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
        figures.append({"config": str(config), "questions": part.height} | means)
    return figures


def drop_counts(drops: pl.DataFrame) -> list[dict[str, Any]]:
    """Count drops (columns of `sources.loaded.DROPS`) by config, step and reason."""
    return drops.group_by("config", "step", "reason", maintain_order=True).len("count").to_dicts()


def check(figures: dict[str, Any], limits: PairLimits, *, source: str = "questions", asked: str = "questions") -> None:
    """Check the figures of `audit` against the recipe's limits.

    `source` is the figure with the number of rows of which the pairs are left, `asked` that with the near-duplicates
    among what was asked.

    Raises:
        AuditFailed: Figures exceed limits; the message names each.
    """
    share = (figures[source] - figures["pairs"]) / figures[source]
    near = figures["near_duplicates"]
    check_limits(
        limit_values(figures) | {"max_drop_share": share, "max_near_duplicates": near[asked] + near["chosen"]}, limits
    )


def spread(counts: pl.Series) -> dict[str, Any]:
    """Return the minimum, median and maximum of counts."""
    return {"min": counts.min(), "median": _rounded(counts.median()), "max": counts.max()}


def _rounded(value: Any) -> float:
    return round(float(value), 4)
