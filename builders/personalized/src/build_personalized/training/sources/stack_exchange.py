"""Stack Exchange dumps (`Posts.xml`): of two answers to a question, the one that the asker accepted is preferred.

Each question gives one pair: its accepted answer against one of the others, drawn by the seed. With all of them a
user's earlier pairs would show the accepted answer of the very question that is asked.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import Source
from pluralbench_release.errors import SourceError
from pluralbench_runs import rng_for

from build_personalized.recipe import public_source, site_of
from build_personalized.sources.dump import STEP, Drop, by_licence, post_of, posts_of, text_of
from build_personalized.sources.loaded import drops_frame
from build_personalized.training.recipe import TrainingSource
from build_personalized.training.sources.loaded import PAIRS, POSTS, Preferences, preferences_digest


def load(paths: Sequence[Path], source: TrainingSource, seed: int, scratch: Path) -> Preferences:
    """What the askers of communities accepted, a dump each; ids are `SITE-POST`, users `SITE-user-NUMBER`.

    Left out, each counted: what `sources.dump` leaves out; answers by the asker; questions without an accepted answer,
    or without another one that differs from it. All questions of a user are posts, answered or not.

    Raises `SourceError` for a dump that is missing, truncated or not XML, and for one that gives no pair.
    """
    with posts_of(paths, scratch, answers=True) as (posts, drops):
        parts = [_of_site(path, posts, source, seed) for path in paths]
    return Preferences(
        pl.concat([part.pairs for part in parts]),
        pl.concat([part.posts for part in parts]),
        pl.concat([drops_frame(drops), *(part.drops for part in parts)]),
        [entry for part in parts for entry in part.sources],
    )


def _of_site(path: Path, posts: sqlite3.Connection, source: TrainingSource, seed: int) -> Preferences:
    site = site_of(path)
    pairs: list[dict[str, Any]] = []
    asked: list[dict[str, Any]] = []
    drops: list[Drop] = []
    licences = Counter[str]()
    query = "SELECT * FROM post WHERE site = ? ORDER BY user, date, id"
    for question in posts.execute(query, (site,)):
        user, post = f"{site}-user-{question['user']}", post_of(question, site)
        licences[question["licence"]] += 1
        asked.append({"config": site, "user_id": user, "post": post})
        answers = posts.execute(
            "SELECT * FROM answer WHERE site = ? AND question = ? ORDER BY id", (site, str(question["id"]))
        ).fetchall()
        own = [answer for answer in answers if answer["user"] == question["user"]]
        drops += [(site, STEP, "answer by the asker", f"{site}-{answer['id']}") for answer in own]
        chosen, rejected, reason = _pair(question, answers, seed)
        if chosen is None or rejected is None:
            drops.append((site, STEP, reason, post["id"]))
            continue
        licences.update([chosen["licence"], rejected["licence"]])
        pairs.append(
            {
                "config": site,
                "id": post["id"],
                "user_id": user,
                "prompt": [{"role": "user", "content": post["text"]}],
                "chosen": text_of(chosen),
                "rejected": text_of(rejected),
                "source_id": post["id"],
                "chosen_source": f"{site}-{chosen['id']}",
                "rejected_source": f"{site}-{rejected['id']}",
            }
        )
    if not pairs:
        raise SourceError(f"{path}: no question has an accepted answer and another one, so there is nothing to prefer.")
    frame, theirs = pl.DataFrame(pairs, schema=PAIRS), pl.DataFrame(asked, schema=POSTS)
    entry = Source(
        name=source.name or f"Stack Exchange dump of {site}",
        location=public_source(f"stack-exchange:{path}"),
        digest=preferences_digest(frame, theirs),
        rows=frame.height,
        licence=max(licences),
        attribution=source.attribution
        or (
            f"Posts by users of {site}; `{site}-N` is the question or answer N of that community. "
            f"{by_licence(licences)}"
        ),
    )
    return Preferences(frame, theirs, drops_frame(drops), [entry])


def _pair(
    question: sqlite3.Row, answers: Sequence[sqlite3.Row], seed: int
) -> tuple[sqlite3.Row | None, sqlite3.Row | None, str]:
    """The accepted answer and another one, or why there are not both."""
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
