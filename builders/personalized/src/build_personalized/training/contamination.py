"""Questions of a benchmark that stand in what is to be learned from: found, left out and counted.

A text counts as the benchmark's where it is the same but for white space, case and Unicode form ("exact"), or shares
some four fifths of its three-word sequences ("near"). It may be a question of the benchmark, or a post of a profile
there; a text that is both counts as a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from pluralbench_release import read_tables
from pluralbench_release.audit import near_texts, normalized
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, public_location

from build_personalized.sources import SAMPLE
from build_personalized.sources.loaded import drops_frame, explained
from build_personalized.training.recipe import OF_AGAINST
from build_personalized.training.sources import Preferences

STEP = "contamination"
ASKED = ("question", "prompt", "context")
KINDS = ("exact question", "near question", "exact post", "near post")


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark asks, and the posts of its profiles."""

    location: str
    revision: str | None
    questions: list[str]
    posts: list[str]

    def entry(self) -> dict[str, Any]:
        """Which benchmark it was, for the statistics of a release."""
        return {
            "location": self.location,
            "revision": self.revision,
            "questions": len(self.questions),
            "posts": len(self.posts),
            "digest": digest([self.questions, self.posts]),
        }


def read_benchmark(location: str) -> Benchmark:
    """The questions (column `question`, `prompt` or `context`) and posts (`profile`) of a release or table.

    location: as of `pluralbench_release.read_tables`, of which every split is read; or `sample`, that of Personalized
    RewardBench in this package. Raises `SourceError`.
    """
    with explained(OF_AGAINST):
        tables = read_tables(str(SAMPLE / "questions") if location == "sample" else location, split="all")
    questions: list[str] = []
    posts: list[str] = []
    for config, frame in tables.frames.items():
        questions += [text for cell in frame[column_asked(frame, tables.paths[config])] for text in all_prompts(cell)]
        posts += [text for cell in frame["profile"] for text in _texts(cell)] if "profile" in frame.columns else []
    shown = "sample" if location == "sample" else public_location(tables.location)
    return Benchmark(shown, tables.revision, list(dict.fromkeys(questions)), list(dict.fromkeys(posts)))


def column_asked(frame: pl.DataFrame, where: str) -> str:
    """The column of what is asked. Raises `SourceError` for a table without one."""
    column = next((name for name in ASKED if name in frame.columns), None)
    if column is None:
        raise SourceError(
            f"{where} has no column {', '.join(ASKED[:-1])} or {ASKED[-1]}, which say what is asked; it has "
            f"{', '.join(frame.columns)}."
        )
    return column


def leave_out(found: Preferences, benchmarks: Sequence[Benchmark]) -> tuple[Preferences, dict[str, Any]]:
    """`found` without what stands in the benchmarks, and the figures.

    A pair goes, and is a drop, where anything that the user says in its prompt stands there, a post where its text
    does. Of a text of several lines the first is compared too, since it may be a title. Figures: `against`, an entry a
    benchmark; `pairs` and `posts`, how many went by kind.
    """
    said = [all_prompts(prompt) for prompt in found.pairs["prompt"]]
    posts = [post["text"] for post in found.posts["post"]]
    kinds = _kinds(list(dict.fromkeys([*(text for texts in said for text in texts), *posts])), benchmarks)
    of_pairs = [min((kinds[text] for text in texts if text in kinds), key=KINDS.index, default=None) for texts in said]
    of_posts = [kinds.get(text) for text in posts]
    ids = zip(found.pairs["config"], found.pairs["id"], strict=True)
    drops = [(config, STEP, kind, row_id) for (config, row_id), kind in zip(ids, of_pairs, strict=True) if kind]
    clean = replace(
        found,
        pairs=found.pairs.filter([kind is None for kind in of_pairs]),
        posts=found.posts.filter([kind is None for kind in of_posts]),
        drops=pl.concat([found.drops, drops_frame(drops)]),
    )
    figures = {
        "against": [benchmark.entry() for benchmark in benchmarks],
        "pairs": {kind: of_pairs.count(kind) for kind in KINDS},
        "posts": {kind: of_posts.count(kind) for kind in KINDS},
    }
    return clean, figures


def _kinds(texts: Sequence[str], benchmarks: Sequence[Benchmark]) -> dict[str, str]:
    """The first of `KINDS` that each of `texts` is; those that are none are left out."""
    parts = [(text, part) for text in texts for part in dict.fromkeys([text, text.strip().partition("\n")[0].strip()])]
    questions = [text for benchmark in benchmarks for text in benchmark.questions]
    posts = [text for benchmark in benchmarks for text in benchmark.posts]
    found: dict[str, str] = {}
    for what, others in (("question", questions), ("post", posts)):
        if not others:
            continue
        known = set(map(normalized, others))
        exact = [text for text, part in parts if normalized(part) in known]
        places = near_texts([part for _, part in parts], others)
        near = [text for (text, _), found_at in zip(parts, places, strict=True) if found_at]
        for kind, theirs in ((f"exact {what}", exact), (f"near {what}", near)):
            found = dict.fromkeys(theirs, kind) | found
    return found


def all_prompts(cell: Any) -> list[str]:
    """What the user says in a prompt: a text, a list of messages, or of what they say turn by turn."""
    if cell is None or isinstance(cell, str):
        return [cell] if cell else []
    parts = [part for part in cell if part is not None]
    messages = [part for part in parts if isinstance(part, dict)]
    told = [part.get("content") for part in messages if part.get("role") == "user"] if messages else parts
    return [text for text in told if isinstance(text, str) and text]


def _texts(cell: Any) -> list[str]:
    """The texts of a profile: a list of texts or of posts with `text`."""
    parts = [part.get("text") if isinstance(part, dict) else part for part in (cell if cell is not None else [])]
    return [text for text in parts if isinstance(text, str) and text]
