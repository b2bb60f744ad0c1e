"""Audit preferences: length, repetition, users, drops."""

from typing import Any

import polars as pl
from pluralbench_release.audit import pair_figures
from pluralbench_release.similarity import near_duplicates, near_texts

from build_personalized.audit import drop_counts, spread
from build_personalized.training.splits import parts


def audit(
    pairs: pl.DataFrame, drops: pl.DataFrame, contamination: dict[str, Any], *, source_pairs: int
) -> dict[str, Any]:
    """Compute the audit figures of a build, serializable as JSON.

    What a scorer could exploit is measured by `pair_figures`, with the words of the persona as the text that answers
    may repeat. Near-duplicates are counted between different users only. `across_splits` counts prompts of other splits
    that are near-duplicates of one in train, `asked_again` pairs whose prompt is also in an earlier pair of the user,
    which would reveal the answer.

    Args:
        pairs: Pairs, columns of `PERSONALIZED_PREFERENCES`, `config` and `split`.
        drops: Dropped rows, columns of `sources.loaded.DROPS`.
        contamination: Figures of `contamination.leave_out`.
        source_pairs: Number of pairs in the sources, without those of users beyond the limit.
    """
    chosen, rejected, users = (pairs[name].to_list() for name in ("chosen", "rejected", "user_id"))
    personas = pairs["persona"].drop_nulls().to_list()
    figures = pair_figures(chosen, rejected, personas or None, owners=users)
    prompts = [prompt[-1]["content"] for prompt in pairs["prompt"].to_list()]
    return figures | {
        "source_pairs": source_pairs,
        "users": pairs["user_id"].n_unique(),
        "by_split": [
            {"config": config, "split": split, "pairs": rows.height, "users": rows["user_id"].n_unique()}
            for config, split, rows in parts(pairs)
        ],
        "drops": drop_counts(drops),
        "contamination": contamination,
        "near_duplicates": {"prompts": near_duplicates(prompts, users), **figures["near_duplicates"]},
        "asked_again": pairs.height - pairs.select("config", "user_id", "prompt").n_unique(),
        "across_splits": _near_train(prompts, pairs["split"].to_list()),
        "profile_posts": spread(pairs["profile"].list.len()),
        "pairs_a_user": spread(pairs.group_by("user_id").len()["len"]),
        "personas": pairs.filter(pl.col("persona").is_not_null())["user_id"].n_unique(),
        "persona_words": spread(pl.Series([len(text.split()) for text in personas])) if personas else None,
    }


def _near_train(prompts: list[str], splits: list[str]) -> int:
    train = [text for text, split in zip(prompts, splits, strict=True) if split == "train"]
    others = [text for text, split in zip(prompts, splits, strict=True) if split != "train"]
    return sum(bool(places) for places in near_texts(others, train))
