"""What a planner is asked of each item of a benchmark, and by what an item is known again that it learned from."""

from collections.abc import Iterable
from typing import Any

from pluralbench_policies.planner_prompts import planner_messages
from pluralbench_release.audit import normalized
from pluralbench_rewards import Message
from pluralbench_runs import digest
from pluralbench_schemas import render_posts

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.downstream.outcomes import conversation_text
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark

LEARNED = "learned"
"""Of a planner's origin: the marks of the items that it learned from."""


def load_people(benchmark: str, data: DataConfig, profile_size: int) -> LoadedBenchmark:
    """Load the prompts and profiles of a benchmark's items, with at most `profile_size` posts each.

    Raises:
        DataError: An item has no profile.
    """
    loaded = load_benchmark(benchmark, data, PromptConfig(profile="raw", profile_size=profile_size), prompts_only=True)
    for item, posts_of_it in zip(loaded.items.frame["id"], _posts(loaded), strict=True):
        if not posts_of_it:
            raise DataError(
                f"The item of id {item} has no profile, and a planner reads nothing else of a person; name its column "
                "(--column profile=COLUMN)."
            )
    return loaded


def prompts_of(loaded: LoadedBenchmark) -> list[list[Message]]:
    """The messages of each item, in the items' order."""
    return [
        planner_messages(conversation_text(group), render_posts(posts))
        for group, posts in zip(loaded.groups(), _posts(loaded), strict=True)
    ]


def marks_of(loaded: LoadedBenchmark) -> list[set[str]]:
    """By what each item is known again in other data: its question with its person's posts, or with what their aspects
    are founded on.

    Neither ids nor the order of posts count, nor does what `normalized` leaves out. A question alone
    is no mark, nor with titles of aspects, since several people may ask and expect the same.
    """

    def mark(question: str, texts: Iterable[str]) -> str:
        return digest([normalized(question), sorted({*map(normalized, texts)})])[:16]

    marks = []
    for group, item in zip(loaded.groups(), loaded.items.frame.iter_rows(named=True), strict=True):
        posts = [post["text"] for post in loaded.context.posts(item)]
        founded = [aspect[name] or "" for aspect in item["aspects"] or [] for name in ("evidence", "reason")]
        marks.append({mark(conversation_text(group), texts) for texts in (posts, founded) if any(texts)})
    return marks


def _posts(loaded: LoadedBenchmark) -> list[list[dict[str, Any]]]:
    """The first posts of each item's person."""
    size = loaded.prompt.profile_size
    return [loaded.context.posts(item)[:size] for item in loaded.items.frame.iter_rows(named=True)]
