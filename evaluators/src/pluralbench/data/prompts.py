"""What a model under test is told about the person: nothing, their past posts, or what a planner thinks they expect.

Rubric aspects and narratives are the standard that a benchmark scores by; only a judge that is an oracle sees aspects.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_rewards import Group, Person
from pluralbench_rewards.contract import TOLD
from pluralbench_runs import digest
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of, render_posts
from pluralbench_tables import parse_json, read_text

from pluralbench.data.benchmarks import Benchmark
from pluralbench.descriptions import AnswerLanguage, Prompt
from pluralbench.errors import DataError

POSTS = "Posts I wrote earlier, the most relevant first:\n{posts}"
PLAN = "What I expect of an answer: {plan}"
ORACLE = "What this person expects of an answer:\n{aspects}"
ASKED_IN = "The question is in {question}, and the answer should be in {answer}."
TRANSLATED = "The question asks for a translation from {question} into {answer}."
WORDINGS = {
    "posts": POSTS,
    "post": render_posts([{"category": "{category}", "text": "{text}"}])[0],
    "plan": PLAN,
    "told": TOLD,
    "oracle": ORACLE,
    "asked_in": ASKED_IN,
    "translated": TRANSLATED,
}


def wordings_digest() -> str:
    """SHA-256 of the wordings above."""
    return digest(dict(WORDINGS))


def groups_of(items: pl.DataFrame, prompt: Prompt, plans: Mapping[str, str]) -> list[Group]:
    """The items as groups, with the person as data and as what `prompt` says of them. Raises `DataError`."""
    several = items["config"].n_unique() > 1
    return [
        Group(
            f"{item['config']}/{item['id']}" if several else item["id"],
            item["prompt"],
            item["responses"],
            person_of(item, plans),
            context_of(item, prompt, plans),
        )
        for item in items.iter_rows(named=True)
    ]


def person_of(item: Mapping[str, Any], plans: Mapping[str, str]) -> Person:
    """Who asks, as data: all that the benchmark lets a model know, whatever its prompt says.

    Their id is the user where the benchmark or the caller names a column of users, else the item itself.
    """
    return Person(id=item["person"], profile=item["profile"] or (), plan=plans.get(item["id"]))


def context_of(item: Mapping[str, Any], prompt: Prompt, plans: Mapping[str, str]) -> tuple[str, ...]:
    """What is said about the person of an item, a block for each post, the most relevant first.

    Raises `DataError` where it is missing.
    """
    if prompt.profile == "none":
        return ()
    if prompt.profile == "plan":
        if item["id"] not in plans:
            raise DataError(f"The plans have none for id {item['id']}; add it, or choose --profile none.")
        return (PLAN.format(plan=plans[item["id"]]),)
    if not item["profile"]:
        raise DataError(
            f"The item of id {item['id']} has no profile; name its column (--column profile=COLUMN), or choose "
            "--profile none."
        )
    first, *others = render_posts(item["profile"][: prompt.profile_size])
    return (POSTS.format(posts=first), *others)


def told_to_judge(item: Mapping[str, Any], prompt: Prompt, plans: Mapping[str, str], *, oracle: bool) -> str:
    """What a judge is told about the person of an item, apart from the question. Raises `DataError`.

    oracle: the rubric aspects that the benchmark scores by, after what `prompt` says. The oracle of the paper of
    Personalized RewardBench (section 4.1) sees the posts and the aspects.
    """
    told = ["\n".join(context_of(item, prompt, plans))]
    if oracle:
        if not item["aspects"]:
            raise DataError(f"The item of id {item['id']} has no rubric aspects, which an oracle is shown.")
        told.append(ORACLE.format(aspects="\n".join(map(_aspect, item["aspects"]))))
    return "\n\n".join(text for text in told if text)


def languages_told(benchmark: Benchmark, config: str, subset: str, answer_language: AnswerLanguage) -> str:
    """In which language the question of an item is, and in which the answer should be; "" where that is not known.

    The answer should be in the same language, or in English where it is code. answer_language: "english" says English
    of all answers, as the authors' runner of M-RewardBench does.
    """
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


def plans_for(prompt: Prompt) -> dict[str, str]:
    """The plans where the profile is "plan". Raises `DataError` where one is given without the other."""
    if (prompt.profile == "plan") != (prompt.plans is not None):
        raise DataError("--profile plan and --plans FILE belong together; give both or neither.")
    return {} if prompt.plans is None else read_plans(prompt.plans)


def read_plans(path: Path) -> dict[str, str]:
    """Inferred aspects by item id, from JSON Lines with `id` and `aspects` (a list of titles, or a text).

    path: such a file, or the directory that `plan` leaves. Raises `DataError` naming the line that is not of this form.
    """
    path = path / "plans.jsonl" if path.is_dir() else path
    plans: dict[str, str] = {}
    for number, line in enumerate(read_text(path, DataError).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            match parse_json(line, where, DataError):
                case {"id": str() | int() as name, "aspects": str() as aspects}:
                    plans[str(name)] = aspects
                case {"id": str() | int() as name, "aspects": [*titles]} if all(isinstance(one, str) for one in titles):
                    plans[str(name)] = ", ".join(map(str, titles))
                case _:
                    raise DataError(f'{where}, is not of the form {{"id": ..., "aspects": [...]}}.')
    return plans
