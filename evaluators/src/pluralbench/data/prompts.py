"""What a model under test is told about the person: nothing, their past posts, or what a planner thinks they expect.

Rubric aspects and narratives are the standard that a benchmark scores by; only a judge in oracle mode sees aspects.
"""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pluralbench_runs import digest
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of, render_profile

from pluralbench.data.benchmarks import Benchmark
from pluralbench.errors import DataError

Profile = Literal["none", "raw", "plan"]
AnswerLanguage = Literal["target", "english"]

POSTS = "Posts I wrote earlier, the most relevant first:\n{posts}"
PLAN = "What I expect of an answer: {plan}"
QUESTION = "{about}\n\nMy question:\n{question}"
ORACLE = "What this person expects of an answer:\n{aspects}"
ASKED_IN = "This person asks in {question} and expects an answer in {answer}."
TRANSLATED = "This person asks for a translation from {question} into {answer}."
WORDINGS = {
    "posts": POSTS,
    "plan": PLAN,
    "question": QUESTION,
    "oracle": ORACLE,
    "asked_in": ASKED_IN,
    "translated": TRANSLATED,
}


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
    benchmark: Benchmark,
    items: pl.DataFrame,
    profile: Profile,
    size: int,
    plans: Mapping[str, str],
    *,
    oracle: bool,
    answer_language: AnswerLanguage = "target",
) -> list[str]:
    """What a judge is told about the person of each item, apart from the question.

    In a benchmark whose configs are languages that is first of all the language that they ask in and the one that the
    answer should be in: the same, or English where the answer is code. answer_language: "english" says English of all
    answers, as the authors' runner does. Raises `DataError`.
    """
    contexts = []
    for item in items.select("config", "subset", "id", "profile", "aspects").iter_rows(named=True):
        told = [languages_told(benchmark, item["config"], item["subset"] or "", answer_language)]
        told.append(about(item, profile, size, plans))
        if oracle:
            if not item["aspects"]:
                raise DataError(f"The item of id {item['id']} has no rubric aspects, which --oracle shows.")
            told.append(ORACLE.format(aspects="\n".join(map(_aspect, item["aspects"]))))
        contexts.append("\n\n".join(text for text in told if text))
    return contexts


def languages_told(benchmark: Benchmark, config: str, subset: str, answer_language: AnswerLanguage) -> str:
    """The sentence about languages for an item; "" where the benchmark has none, or its language is not known."""
    if benchmark.reference is None:
        return ""
    if config in benchmark.apart:
        source, target = map(language_of, (subset.split("-") + [""] * 3)[1:3])
        return TRANSLATED.format(question=source.name, answer=target.name) if source and target else ""
    if config not in LANGUAGES:
        return ""
    is_code = any(fnmatchcase(subset, pattern) for pattern in benchmark.reference.code)
    answer = ENGLISH if is_code or answer_language == "english" else config
    return ASKED_IN.format(question=LANGUAGES[config].name, answer=LANGUAGES[answer].name)


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
