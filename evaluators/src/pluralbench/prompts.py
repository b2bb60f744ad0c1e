"""What a model under test is told about the person: nothing, their past posts, or what a planner thinks they expect.

Rubric aspects and narratives are the standard that a benchmark scores by; only a judge in oracle mode sees aspects.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pluralbench_runs import digest
from pluralbench_schemas import render_profile

from pluralbench.errors import DataError

Profile = Literal["none", "raw", "plan"]

POSTS = "Posts I wrote earlier, the most relevant first:\n{posts}"
PLAN = "What I expect of an answer: {plan}"
QUESTION = "{about}\n\nMy question:\n{question}"
ORACLE = "What this person expects of an answer:\n{aspects}"
WORDINGS = {"posts": POSTS, "plan": PLAN, "question": QUESTION, "oracle": ORACLE}


def wordings_digest() -> str:
    """SHA-256 of the wordings above."""
    return digest(dict(WORDINGS))


def about(item: Mapping[str, Any], profile: Profile, size: int, plans: Mapping[str, str]) -> str:
    """What is said about the person of an item; `size` is the most posts. Raises `DataError` where it is missing."""
    if profile == "none":
        return ""
    if profile == "plan":
        if item["id"] not in plans:
            raise DataError(f"The plans have none for id {item['id']}; add it, or choose --profile none.")
        return PLAN.format(plan=plans[item["id"]])
    if not item["profile"]:
        raise DataError(f"The item of id {item['id']} has no profile; choose --profile none.")
    return POSTS.format(posts=render_profile(item["profile"][:size]))


def prompts_of(
    items: pl.DataFrame, profile: Profile, size: int, plans: Mapping[str, str]
) -> list[list[dict[str, str]]]:
    """The messages of each item as a reward model sees them: what is said about the person precedes the question."""
    prompts = []
    for item in items.select("id", "prompt", "profile").iter_rows(named=True):
        messages = [dict(message) for message in item["prompt"]]
        told = about(item, profile, size, plans)
        if told:
            messages[-1]["content"] = QUESTION.format(about=told, question=messages[-1]["content"])
        prompts.append(messages)
    return prompts


def contexts_of(
    items: pl.DataFrame, profile: Profile, size: int, plans: Mapping[str, str], *, oracle: bool
) -> list[str]:
    """What a judge is told about the person of each item, apart from the question. Raises `DataError`."""
    contexts = []
    for item in items.select("id", "profile", "aspects").iter_rows(named=True):
        told = [about(item, profile, size, plans)]
        if oracle:
            if not item["aspects"]:
                raise DataError(f"The item of id {item['id']} has no rubric aspects, which --oracle shows.")
            told.append(ORACLE.format(aspects="\n".join(map(_aspect, item["aspects"]))))
        contexts.append("\n\n".join(text for text in told if text))
    return contexts


def _aspect(aspect: Mapping[str, str | None]) -> str:
    return f"- {aspect['aspect']}" + (f": {aspect['reason']}" if aspect["reason"] else "")


def plans_for(profile: Profile, path: Path | None) -> dict[str, str]:
    """The plans of `path` where the profile is "plan". Raises `DataError` where one is given without the other."""
    if (profile == "plan") != (path is not None):
        raise DataError("--profile plan and --plans FILE belong together; give both or neither.")
    return {} if path is None else read_plans(path)


def read_plans(path: Path) -> dict[str, str]:
    """Inferred aspects by item id, from JSON Lines with `id` and `aspects` (a list of titles, or a text).

    Raises `DataError` naming the line that is not of this form.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The plans {path} cannot be read: {error}.") from None
    plans: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            plans[str(row["id"])] = _joined(row["aspects"])
        except (ValueError, KeyError, TypeError):
            raise DataError(f'{path}, line {number}, is not of the form {{"id": ..., "aspects": [...]}}.') from None
    return plans


def _joined(aspects: str | Sequence[str]) -> str:
    return aspects if isinstance(aspects, str) else ", ".join(aspects)
