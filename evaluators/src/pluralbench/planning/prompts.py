"""What a planner is asked of each item of a benchmark."""

from typing import Any

from pluralbench_policies.planner_prompts import planner_messages
from pluralbench_rewards import Message
from pluralbench_schemas import render_posts

from pluralbench.descriptions import Data, Prompt
from pluralbench.downstream.outcomes import shown
from pluralbench.errors import DataError
from pluralbench.evaluation.settings import Loaded, load_benchmark


def load_people(benchmark: str, data: Data, posts: int) -> Loaded:
    """The items whose answers a planner plans; of them the prompts alone are read. posts: of a profile, at most.

    Raises `DataError` where an item has no profile.
    """
    loaded = load_benchmark(benchmark, data, Prompt(profile="raw", profile_size=posts), sampled=True)
    for item, posts_of_it in zip(loaded.items.frame["id"], _posts(loaded), strict=True):
        if not posts_of_it:
            raise DataError(
                f"The item of id {item} has no profile, and a planner reads nothing else of a person; name its column "
                "(--column profile=COLUMN)."
            )
    return loaded


def prompts_of(loaded: Loaded) -> list[list[Message]]:
    """The messages of each item, in the items' order."""
    return [
        planner_messages(shown(group), render_posts(posts))
        for group, posts in zip(loaded.groups(), _posts(loaded), strict=True)
    ]


def _posts(loaded: Loaded) -> list[list[dict[str, Any]]]:
    """The first posts of each item's person."""
    size = loaded.prompt.profile_size
    return [loaded.told.posts(item)[:size] for item in loaded.items.frame.iter_rows(named=True)]
