"""What a planner is asked of each item of a benchmark."""

from pluralbench_policies.planner_prompts import planner_messages
from pluralbench_rewards import Message
from pluralbench_schemas import render_posts

from pluralbench.data.prompts import groups_of
from pluralbench.descriptions import Data, Prompt
from pluralbench.downstream.outcomes import shown
from pluralbench.errors import DataError
from pluralbench.evaluation.settings import Loaded, load_benchmark


def load_people(benchmark: str, data: Data, posts: int) -> Loaded:
    """The items whose answers a planner plans; of them the prompts alone are read. posts: of a profile, at most.

    Raises `DataError` where an item has no profile.
    """
    loaded = load_benchmark(benchmark, data, Prompt(profile="raw", profile_size=posts), sampled=True)
    bare = loaded.items.frame.filter(loaded.items.frame["profile"].list.len().fill_null(0) == 0)
    if bare.height:
        raise DataError(
            f"The item of id {bare['id'][0]} has no profile, and a planner reads nothing else of a person; name its "
            "column (--column profile=COLUMN)."
        )
    return loaded


def prompts_of(loaded: Loaded) -> list[list[Message]]:
    """The messages of each item, in the items' order."""
    profiles = loaded.items.frame["profile"].to_list()
    groups = groups_of(loaded.items.frame, Prompt(), {})
    return [
        planner_messages(shown(group), render_posts(profile[: loaded.prompt.profile_size]))
        for group, profile in zip(groups, profiles, strict=True)
    ]
