"""Prompts of planners, and fingerprints that recognize their training items in other data."""

from collections.abc import Iterable
from typing import Any

from pluralbench_policies.planner_options import planner_messages
from pluralbench_release.similarity import normalized
from pluralbench_rewards import Message
from pluralbench_runs import digest
from pluralbench_schemas import render_posts

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.downstream.outcomes import conversation_text
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark

LEARNED = "learned"
"""Key of a planner's origin: fingerprints of its training items."""


def load_planner_items(benchmark: str, data: DataConfig, profile_size: int) -> LoadedBenchmark:
    """Load the prompts and profiles of items. Raises `DataError` for an item without a profile."""
    loaded = load_benchmark(benchmark, data, PromptConfig(profile="raw", profile_size=profile_size), prompts_only=True)
    for item, posts in zip(loaded.items.frame["id"], _posts(loaded), strict=True):
        if not posts:
            raise DataError(
                f"The item {item} has no profile, which planners need; name its column with "
                '`columns=["profile=COLUMN"]`.'
            )
    return loaded


def planner_prompts(loaded: LoadedBenchmark) -> list[list[Message]]:
    """Return the messages to the planner, by item."""
    return [
        planner_messages(conversation_text(group), render_posts(posts))
        for group, posts in zip(loaded.groups(), _posts(loaded), strict=True)
    ]


def item_fingerprints(loaded: LoadedBenchmark) -> list[set[str]]:
    """Return fingerprints of each item: its question with the user's posts, and with the evidence of its aspects.

    Ids, the order of posts and what `normalized` ignores do not matter. The question alone, or with the titles of
    aspects, is no fingerprint: several users may ask and expect the same.
    """

    def fingerprint(question: str, texts: Iterable[str]) -> str:
        return digest([normalized(question), sorted({*map(normalized, texts)})])[:16]

    fingerprints = []
    for group, item in zip(loaded.groups(), loaded.items.frame.iter_rows(named=True), strict=True):
        posts = [post["text"] for post in loaded.context.posts(item)]
        evidence = [aspect[name] or "" for aspect in item["aspects"] or [] for name in ("evidence", "reason")]
        fingerprints.append({fingerprint(conversation_text(group), texts) for texts in (posts, evidence) if any(texts)})
    return fingerprints


def _posts(loaded: LoadedBenchmark) -> list[list[dict[str, Any]]]:
    size = loaded.prompt.profile_size
    return [loaded.context.posts(item)[:size] for item in loaded.items.frame.iter_rows(named=True)]
