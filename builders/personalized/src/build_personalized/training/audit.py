"""What could be wrong with preferences although each is valid: length, repetition, users, and what was left out."""

from typing import Any

import polars as pl
from pluralbench_release.audit import PairLimits, check_limits, limited, near_duplicates, near_texts, pair_figures

from build_personalized.audit import drop_counts, spread
from build_personalized.training.splits import parts


def audit(
    pairs: pl.DataFrame, drops: pl.DataFrame, contamination: dict[str, Any], *, source_pairs: int
) -> dict[str, Any]:
    """Figures about `pairs` (columns of `PersonalizedPreferences`, `config` and `split`), JSON.

    source_pairs: how many the sources had, those of users beyond the limit aside. What a scorer could cheat on is as in
    `pair_figures`; what it could repeat are the words of the persona, where there are personas.
    Near-duplicates are of different users.
    across_splits: prompts of the other splits that nearly equal one of train. asked_again: pairs whose prompt the same
    user has in an earlier pair, which would show the answer.
    """
    chosen, rejected, users = (pairs[name].to_list() for name in ("chosen", "rejected", "user_id"))
    personas = pairs["persona"].drop_nulls().to_list()
    found = pair_figures(chosen, rejected, personas or None, owners=users)
    asked = [prompt[-1]["content"] for prompt in pairs["prompt"].to_list()]
    return found | {
        "source_pairs": source_pairs,
        "users": pairs["user_id"].n_unique(),
        "by_split": [
            {"config": config, "split": split, "pairs": rows.height, "users": rows["user_id"].n_unique()}
            for config, split, rows in parts(pairs)
        ],
        "drops": drop_counts(drops),
        "contamination": contamination,
        "near_duplicates": {"prompts": near_duplicates(asked, users), **found["near_duplicates"]},
        "asked_again": pairs.height - pairs.select("config", "user_id", "prompt").n_unique(),
        "across_splits": _across(asked, pairs["split"].to_list()),
        "profile_posts": spread(pairs["profile"].list.len()),
        "pairs_a_user": spread(pairs.group_by("user_id").len()["len"]),
        "personas": pairs.filter(pl.col("persona").is_not_null())["user_id"].n_unique(),
        "persona_words": spread(pl.Series([len(text.split()) for text in personas])) if personas else None,
    }


def check(figures: dict[str, Any], limits: PairLimits) -> None:
    """Raise `pluralbench_release.audit.AuditFailed` naming every limit that the figures of `audit` break."""
    share = 1 - figures["pairs"] / figures["source_pairs"]
    near = figures["near_duplicates"]
    check_limits(
        limited(figures) | {"max_drop_share": share, "max_near_duplicates": near["prompts"] + near["chosen"]}, limits
    )


def _across(asked: list[str], splits: list[str]) -> int:
    train = [text for text, split in zip(asked, splits, strict=True) if split == "train"]
    others = [text for text, split in zip(asked, splits, strict=True) if split != "train"]
    return sum(bool(places) for places in near_texts(others, train))
