"""Remove the questions of benchmarks from training data, and count them.

A text matches a benchmark if it is equal up to white space, case and Unicode form ("exact"), or shares about four
fifths of its three-word sequences ("near"). It may match a question of the benchmark or a post of a profile there; a
text that matches both counts as a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from pluralbench_release import read_tables
from pluralbench_release.errors import SourceError
from pluralbench_release.similarity import near_texts, normalized
from pluralbench_runs import digest, public_location

from build_personalized.sources import SAMPLE
from build_personalized.sources.loaded import drops_frame, source_error_hint
from build_personalized.training.recipe import AGAINST_HINT
from build_personalized.training.sources import Preferences

STEP = "contamination"
PROMPT_COLUMNS = ("question", "prompt", "context")
KINDS = ("exact question", "near question", "exact post", "near post")


@dataclass(frozen=True)
class Benchmark:
    """Distinct questions of a benchmark, and distinct posts of its profiles.

    Attributes:
        location: Location of the benchmark as the release records it.
        revision: Commit of a Hub repository. None: files.
    """

    location: str
    revision: str | None
    questions: list[str]
    posts: list[str]

    def entry(self) -> dict[str, Any]:
        """Describe the benchmark for the statistics of a release."""
        return {
            "location": self.location,
            "revision": self.revision,
            "questions": len(self.questions),
            "posts": len(self.posts),
            "digest": digest([self.questions, self.posts]),
        }


def read_benchmark(location: str) -> Benchmark:
    """Read the questions (column `question`, `prompt` or `context`) and posts (`profile`) of all splits of a benchmark.

    `sample` is the sample of Personalized RewardBench in this package.

    Raises:
        SourceError: The benchmark cannot be read or has no column of questions.
    """
    with source_error_hint(AGAINST_HINT):
        tables = read_tables(str(SAMPLE / "questions") if location == "sample" else location, split="all")
    questions: list[str] = []
    posts: list[str] = []
    for config, frame in tables.frames.items():
        questions += [text for cell in frame[prompt_column(frame, tables.paths[config])] for text in user_texts(cell)]
        posts += [text for cell in frame["profile"] for text in _post_texts(cell)] if "profile" in frame.columns else []
    shown = "sample" if location == "sample" else public_location(tables.location)
    return Benchmark(shown, tables.revision, list(dict.fromkeys(questions)), list(dict.fromkeys(posts)))


def prompt_column(frame: pl.DataFrame, where: str) -> str:
    """Return the name of the column with the questions. Raises `SourceError` if the table has none."""
    column = next((name for name in PROMPT_COLUMNS if name in frame.columns), None)
    if column is None:
        raise SourceError(
            f"{where} has no column {', '.join(PROMPT_COLUMNS[:-1])} or {PROMPT_COLUMNS[-1]} with the questions; its "
            f"columns are {', '.join(frame.columns)}."
        )
    return column


def leave_out(preferences: Preferences, benchmarks: Sequence[Benchmark]) -> tuple[Preferences, dict[str, Any]]:
    """Remove pairs and posts whose text is in a benchmark.

    A pair is dropped if any user message of its prompt matches, a post if its text matches. The first line of a longer
    text is compared too, since it may be a title.

    Returns:
        The remaining preferences, and the figures: `against`, an entry for each benchmark; `pairs` and `posts`, the
        number removed by kind.
    """
    prompts = [user_texts(prompt) for prompt in preferences.pairs["prompt"]]
    posts = [post["text"] for post in preferences.posts["post"]]
    kinds = _match_kinds(list(dict.fromkeys([*(text for texts in prompts for text in texts), *posts])), benchmarks)
    pair_kinds = [
        min((kinds[text] for text in texts if text in kinds), key=KINDS.index, default=None) for texts in prompts
    ]
    post_kinds = [kinds.get(text) for text in posts]
    ids = zip(preferences.pairs["config"], preferences.pairs["id"], strict=True)
    drops = [(config, STEP, kind, row_id) for (config, row_id), kind in zip(ids, pair_kinds, strict=True) if kind]
    clean = replace(
        preferences,
        pairs=preferences.pairs.filter([kind is None for kind in pair_kinds]),
        posts=preferences.posts.filter([kind is None for kind in post_kinds]),
        drops=pl.concat([preferences.drops, drops_frame(drops)]),
    )
    figures = {
        "against": [benchmark.entry() for benchmark in benchmarks],
        "pairs": {kind: pair_kinds.count(kind) for kind in KINDS},
        "posts": {kind: post_kinds.count(kind) for kind in KINDS},
    }
    return clean, figures


def _match_kinds(texts: Sequence[str], benchmarks: Sequence[Benchmark]) -> dict[str, str]:
    """Map each text that matches a benchmark to the first of `KINDS` that applies."""
    parts = [(text, part) for text in texts for part in dict.fromkeys([text, text.strip().partition("\n")[0].strip()])]
    questions = [text for benchmark in benchmarks for text in benchmark.questions]
    posts = [text for benchmark in benchmarks for text in benchmark.posts]
    kinds: dict[str, str] = {}
    for part_kind, others in (("question", questions), ("post", posts)):
        if not others:
            continue
        normal = set(map(normalized, others))
        exact = [text for text, part in parts if normalized(part) in normal]
        places = near_texts([part for _, part in parts], others)
        near = [text for (text, _), matches in zip(parts, places, strict=True) if matches]
        for kind, matched in ((f"exact {part_kind}", exact), (f"near {part_kind}", near)):
            kinds = dict.fromkeys(matched, kind) | kinds
    return kinds


def user_texts(cell: Any) -> list[str]:
    """Return the user's texts in a prompt: a text, a list of messages, or a list of the user's turns."""
    if cell is None or isinstance(cell, str):
        return [cell] if cell else []
    parts = [part for part in cell if part is not None]
    messages = [part for part in parts if isinstance(part, dict)]
    texts = [part.get("content") for part in messages if part.get("role") == "user"] if messages else parts
    return [text for text in texts if isinstance(text, str) and text]


def _post_texts(cell: Any) -> list[str]:
    """Return the texts of a profile: a list of texts or of posts with `text`."""
    parts = [part.get("text") if isinstance(part, dict) else part for part in (cell if cell is not None else [])]
    return [text for text in parts if isinstance(text, str) and text]
