"""Read preferences from Stack Exchange dumps (`Posts.xml`): the asker prefers the accepted answer.

Each question gives one pair: its accepted answer and one other answer, drawn by the seed. With several pairs per
question, a user's earlier pairs would reveal the accepted answer.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import rng_for

from build_personalized.recipe import site_of
from build_personalized.sources.dump import STEP, Drop, dump_entry, open_posts, profile_post
from build_personalized.sources.loaded import PAIRS, POSTS, Preferences, drops_frame, preferences_digest
from build_personalized.sources.markup import to_markdown
from build_personalized.training.recipe import TrainingSource


def load(paths: Sequence[Path], source: TrainingSource, seed: int, scratch: Path) -> Preferences:
    """Read the accepted answers of communities; ids are `SITE-POST`, users `SITE-user-NUMBER`.

    Dropped and counted are the posts that `sources.dump` drops, answers by the asker, and questions without an accepted
    answer or without a different other answer. All questions of a user become posts, answered or not.

    Raises:
        SourceError: A dump is missing, truncated or not XML, or gives no pair.
    """
    with open_posts(paths, scratch, answers=True) as (posts, drops):
        parts = [_load_site(path, posts, source, seed) for path in paths]
    return Preferences(
        pl.concat([part.pairs for part in parts]),
        pl.concat([part.posts for part in parts]),
        pl.concat([drops_frame(drops), *(part.drops for part in parts)]),
        [entry for part in parts for entry in part.sources],
    )


def _load_site(path: Path, posts: sqlite3.Connection, source: TrainingSource, seed: int) -> Preferences:
    site = site_of(path)
    pairs: list[dict[str, Any]] = []
    user_posts: list[dict[str, Any]] = []
    drops: list[Drop] = []
    licenses = Counter[str]()
    query = "SELECT * FROM post WHERE site = ? ORDER BY user, date, id"
    for question in posts.execute(query, (site,)):
        user, post = f"{site}-user-{question['user']}", profile_post(question, site)
        licenses[question["license"]] += 1
        user_posts.append({"config": site, "user_id": user, "post": post})
        answers = posts.execute(
            "SELECT * FROM answer WHERE site = ? AND question = ? ORDER BY id", (site, str(question["id"]))
        ).fetchall()
        own = [answer for answer in answers if answer["user"] == question["user"]]
        drops += [(site, STEP, "answer by the asker", f"{site}-{answer['id']}") for answer in own]
        chosen, rejected, reason = _choose_pair(question, answers, seed)
        if chosen is None or rejected is None:
            drops.append((site, STEP, reason, post["id"]))
            continue
        licenses.update([chosen["license"], rejected["license"]])
        pairs.append(
            {
                "config": site,
                "id": post["id"],
                "user_id": user,
                "prompt": [{"role": "user", "content": post["text"]}],
                "chosen": to_markdown(chosen["body"]),
                "rejected": to_markdown(rejected["body"]),
                "source_id": post["id"],
                "chosen_source": f"{site}-{chosen['id']}",
                "rejected_source": f"{site}-{rejected['id']}",
            }
        )
    if not pairs:
        raise SourceError(f"{path}: no question has an accepted answer and another one, so there are no pairs.")
    pair_frame, post_frame = pl.DataFrame(pairs, schema=PAIRS), pl.DataFrame(user_posts, schema=POSTS)
    ids = "`{site}-N` is the question or answer N"
    entry = dump_entry(path, source, ids, preferences_digest(pair_frame, post_frame), pair_frame.height, licenses)
    return Preferences(pair_frame, post_frame, drops_frame(drops), [entry])


def _choose_pair(
    question: sqlite3.Row, answers: Sequence[sqlite3.Row], seed: int
) -> tuple[sqlite3.Row | None, sqlite3.Row | None, str]:
    """Return the accepted answer, another one, and the reason if one of them is missing."""
    if question["accepted"] is None:
        return None, None, "no accepted answer"
    accepted = next((answer for answer in answers if str(answer["id"]) == question["accepted"]), None)
    if accepted is None:
        return None, None, "the accepted answer is not there"
    if accepted["user"] == question["user"]:
        return None, None, "the accepted answer is the asker's own"
    others = [answer for answer in answers if answer["user"] != question["user"] and answer["text"] != accepted["text"]]
    if not others:
        return accepted, None, "no other answer"
    return accepted, rng_for(seed, "rejected", question["site"], question["id"]).choice(others), ""
