"""Personal Reddit: invented people's answers to questions, each of which reveals something about the person.

The source is a JSONL file, `synthetic_dataset.jsonl` of eth-sri/llmprivacy, with `personality` (an object with `age`,
`sex`, `city_country`, `birth_city_country`, `education`, `occupation`, `income` and `relationship_status`),
`question_asked` and `response`. There are no ids: rows with the same personality belong to one person.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pluralbench_calls import Backend, Ledger
from pluralbench_calls.retrieval import Query, Retriever, rank
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest

from build_persona_judge.pairing import Post
from build_persona_judge.persona import PERSONAS, Persona, clean_value, text_of
from build_persona_judge.recipe import RedditTable
from build_persona_judge.sources.loaded import Loaded, as_object, location_of, personas_of, read_file, source_of

HOW = "Personal Reddit is synthetic_dataset.jsonl of eth-sri/llmprivacy."
COLUMNS = ("personality", "question_asked", "response")
PERSONA = PERSONAS["personal_reddit"]
VARIABLES = [variable.column for variable in PERSONA]
SHORT = 12


def load(table: RedditTable) -> Loaded[Post]:
    """Load the posts without repetitions. Raises `SourceError`."""
    path = Path(location_of(table, "personal_reddit/synthetic_dataset.jsonl"))
    lines = read_file(path, COLUMNS, HOW)
    keys = sorted({key for line in lines for key in as_object(line["personality"])})
    for name in VARIABLES:
        if name not in keys:
            raise SourceError(
                f"No `personality` in {path} has `{name}`; they have {', '.join(keys) or 'no variables'}. {HOW}"
            )
    rows = [_row(line) for line in lines]
    people = {_user(row): row["personality"] for row in rows}
    personas, dropped = personas_of(people, PERSONA, table.missing_values)
    posts: dict[str, Post] = {}
    for row in rows:
        user, question, text = _user(row), row["question_asked"], row["response"]
        post = Post(digest([user, question, text])[:SHORT], user, question or "", text or "")
        reason = "the same post twice" if post.id in posts else None
        if clean_value(question) is None or clean_value(text) is None:
            reason = "no text"
        elif user not in personas:
            reason = "nothing is known of the person"
        if reason is not None:
            dropped.append(("post", post.id, reason))
            continue
        posts[post.id] = post
    attribution = "Personal Reddit, the synthetic data set of LLM privacy (Staab et al., 2024)."
    source = source_of(table, rows, name="Personal Reddit", attribution=attribution)
    return Loaded(list(posts.values()), personas, sorted(dropped), source)


def persona_similarity(
    posts: Sequence[Post], personas: dict[str, Persona], ledger: Ledger, retriever: Retriever, backend: Backend
) -> dict[str, tuple[dict[str, float], str]]:
    """Compute the similarity of each person's persona to those of all others.

    The paper uses the cosine similarity of all-MiniLM-L6-v2 between personas (A.2).

    Returns:
        By user, the scores of all other users and the key of the recorded call.
    """
    users = sorted({post.user for post in posts})
    others = {user: [other for other in users if other != user] for user in users}
    queries = [
        Query(text_of(personas[user]), [text_of(personas[other]) for other in others[user]], f"people like {user}")
        for user in users
    ]
    ranked = rank(queries, ledger, retriever, backend)
    return {
        user: (dict(zip(others[user], scores, strict=True)), call)
        for user, (scores, call) in zip(users, ranked, strict=True)
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    personality = {key: value for key, value in as_object(row["personality"]).items() if key in VARIABLES}
    return {"personality": personality, "question_asked": row["question_asked"], "response": row["response"]}


def _user(row: dict[str, Any]) -> str:
    values = [clean_value(row["personality"].get(name)) for name in VARIABLES]
    return f"person-{digest(values)[:SHORT]}"
