"""What a model under test is told about the person: nothing, their posts, a planner's guess, or a persona.

Rubric aspects and narratives are the standard that a benchmark scores by; only a judge that is an oracle sees aspects.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_rewards import Group, Person, personas
from pluralbench_rewards.contract import MODEL_FIELDS, Message
from pluralbench_runs import digest
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of, render_posts

from pluralbench.config import AnswerLanguage, Oracle, Profile, PromptConfig
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.history import History
from pluralbench.data.personas import UserPersona, json_lines, read_personas
from pluralbench.errors import DataError

KNOWN = ("profile", "persona", "earlier")
"""What items know of their person beside the id; of the rubric aspects no group has anything."""
POSTS = "Posts I wrote earlier:\n{posts}"
PLAN = "What I expect of an answer: {plan}"
ORACLE = "What this person expects of an answer:\n{aspects}"
ASKED_IN = "The question is in {question}, and the answer should be in {answer}."
TRANSLATED = "The question asks for a translation from {question} into {answer}."
WORDINGS = {
    "posts": POSTS,
    "post": render_posts([{"category": "{category}", "text": "{text}"}])[0],
    "plan": PLAN,
    "told": MODEL_FIELDS,
    "oracle": ORACLE,
    "asked_in": ASKED_IN,
    "translated": TRANSLATED,
}


def prompts_digest(profile: Profile) -> str:
    """SHA-256 of the wordings above; those of personas are part of it where the profile is one."""
    return digest(WORDINGS | (personas.WORDINGS if profile == "persona" else {}))


@dataclass(frozen=True)
class UserContext:
    """What is known of people beside what their items say, and which of all that a prompt tells.

    plans: by the id of an item. personas: by the id of an item or of a person. history: pairs they decided before.
    """

    prompt: PromptConfig = field(default_factory=PromptConfig)
    plans: Mapping[str, str] = field(default_factory=dict)
    personas: Mapping[str, UserPersona] = field(default_factory=dict)
    history: History = field(default_factory=History)

    def persona(self, item: Mapping[str, Any]) -> UserPersona | None:
        """The persona of an item: the file's for the item or else for its person, or else the data's."""
        given = self.personas.get(item["id"]) or self.personas.get(item["person"])
        return given or (UserPersona(tuple(item["persona"])) if item["persona"] else None)

    def posts(self, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The posts of an item's person: the data's, or where it has none what they asked before."""
        return item["profile"] or self.history.questions(item)


def items_to_groups(
    items: pl.DataFrame, context: UserContext, *, several_configs: bool, full_context: bool = False
) -> list[Group]:
    """The items as groups, with what a prompt tells of the person, as data and as text. Raises `DataError`.

    several_configs: whether group ids start with the config. full_context: see `build_person`.
    """
    rows = items.select("config", "id", "person", "responses", *KNOWN).iter_rows(named=True)
    return [
        Group(
            f"{item['config']}/{item['id']}" if several_configs else item["id"],
            item["prompt"],
            item["responses"],
            build_person(item, context, full_context=full_context),
            context_blocks(item, context),
        )
        for row, prompt in zip(rows, _messages(items["prompt"]), strict=True)
        for item in (row | {"prompt": prompt},)
    ]


def _messages(prompts: pl.Series) -> Iterator[list[Message]]:
    """Prompts as messages, by column: polars takes five times as long for lists of objects."""
    flat = prompts.explode(empty_as_null=False).struct
    messages = zip(flat.field("role").to_list(), flat.field("content").to_list(), strict=True)
    for size in prompts.list.len().to_list():
        yield [{"role": role, "content": content} for role, content in islice(messages, size)]


def build_person(item: Mapping[str, Any], context: UserContext, *, full_context: bool = False) -> Person:
    """Who asks, as data: what the prompt tells of them, so that no model is told more than the run says.

    Posts come with the data's persona, since personalized models read both. The id, which is the user where the
    benchmark or the caller names a column of users and else the item itself, and the pairs that they decided before
    are there whatever the prompt tells: a run says whether its data has such pairs. full_context: all that is known.
    """
    prompt = context.prompt
    persona = context.persona(item) if full_context or prompt.profile in {"raw", "persona"} else None
    posts = context.posts(item) if full_context or prompt.profile == "raw" else []
    return Person(
        id=item["person"],
        profile=posts if full_context else posts[: prompt.profile_size],
        persona=() if persona is None else persona.sentences,
        plan=context.plans.get(item["id"]),
        earlier=context.history.before(item),
    )


def context_blocks(item: Mapping[str, Any], context: UserContext) -> tuple[str, ...]:
    """What is said about the person of an item: a block for each post, in the data's order, or one of all else.

    Nothing where the posts are the questions of earlier pairs, of which the person has none yet. Raises `DataError`
    where anything else is missing.
    """
    prompt = context.prompt
    if prompt.profile == "none":
        return ()
    if prompt.profile == "plan":
        if item["id"] not in context.plans:
            raise DataError(f"The plans have none for id {item['id']}; add it, or choose --profile none.")
        return (PLAN.format(plan=context.plans[item["id"]]),)
    if prompt.profile == "persona":
        return (personas.persona_block(_persona(item, context).sentences),)
    posts = context.posts(item)
    if not posts and item["earlier"] is not None:
        return ()
    if not posts:
        raise DataError(
            f"The item of id {item['id']} has no profile; name its column (--column profile=COLUMN), or choose "
            "--profile none."
        )
    first, *others = render_posts(posts[: prompt.profile_size])
    return (POSTS.format(posts=first), *others)


def _persona(item: Mapping[str, Any], context: UserContext) -> UserPersona:
    persona = context.persona(item)
    if persona is None:
        where, mend = ("The personas have", "add it") if context.personas else ("There is", "give --personas FILE")
        raise DataError(
            f"{where} no persona for id {item['id']} or the person {item['person']}; {mend}, name the column of one "
            "(--column persona=COLUMN), or choose --profile none."
        )
    return persona


def judge_context(item: Mapping[str, Any], context: UserContext, *, oracle: Oracle | None) -> str:
    """What a judge is told about the person of an item, apart from the question. Raises `DataError`.

    A persona is followed by its demonstrations, as SynthesizeMe's judge has them.
    oracle: the rubric aspects that the benchmark scores by, after what the prompt tells: their titles, as the policy's
    judge of Personalized RewardBench has them, or the reasons too. The paper's oracle (appendix A.4) sees the posts and
    the aspects.
    """
    blocks = ["\n".join(context_blocks(item, context))]
    if context.prompt.profile == "persona":
        blocks += map(personas.demonstration_block, _persona(item, context).demonstrations)
    if oracle:
        if not item["aspects"]:
            raise DataError(f"The item of id {item['id']} has no rubric aspects, which an oracle is shown.")
        blocks.append(ORACLE.format(aspects="\n".join(_aspect(one, oracle) for one in item["aspects"])))
    return "\n\n".join(text for text in blocks if text)


def language_context(benchmark: Benchmark, config: str, subset: str, answer_language: AnswerLanguage) -> str:
    """In which language the question of an item is, and in which the answer should be; "" where that is not known.

    The answer should be in the same language, or in English where it is code. answer_language: "english" says English
    of all answers, as the authors' runner of M-RewardBench does.
    """
    if benchmark.reference is None:
        return ""
    if config in benchmark.excluded_configs:
        source, target = map(language_of, (subset.split("-") + [""] * 3)[1:3])
        return TRANSLATED.format(question=source.name, answer=target.name) if source and target else ""
    if config not in LANGUAGES:
        return ""
    is_code = any(fnmatchcase(subset, pattern) for pattern in benchmark.reference.code)
    answer = ENGLISH if is_code or answer_language == "english" else config
    return ASKED_IN.format(question=LANGUAGES[config].name, answer=LANGUAGES[answer].name)


def _aspect(aspect: Mapping[str, str | None], oracle: Oracle) -> str:
    reason = aspect["reason"] if oracle == "reasons" else None
    return f"- {aspect['aspect']}" + (f": {reason}" if reason else "")


def load_plans(prompt: PromptConfig) -> dict[str, str]:
    """The plans where the profile is "plan". Raises `DataError` where one is given without the other."""
    if (prompt.profile == "plan") != (prompt.plans is not None):
        raise DataError("--profile plan and --plans FILE belong together; give both or neither.")
    return {} if prompt.plans is None else read_plans(prompt.plans)


def load_user_personas(prompt: PromptConfig) -> dict[str, UserPersona]:
    """The personas of the prompt's file. Raises `DataError` where it is given for another profile."""
    if prompt.personas is None:
        return {}
    if prompt.profile != "persona":
        raise DataError("--personas FILE is for --profile persona; give both, or leave out the file.")
    return read_personas(prompt.personas)


def read_plans(path: Path) -> dict[str, str]:
    """Inferred aspects by item id, from JSON Lines with `id` and `aspects` (a list of titles, or a text).

    path: such a file, or the directory that `plan` leaves. Raises `DataError` naming the line that is not of this form.
    """
    plans: dict[str, str] = {}
    for where, value in json_lines(path, "plans.jsonl"):
        match value:
            case {"id": str() | int() as name, "aspects": str() as aspects}:
                plans[str(name)] = aspects
            case {"id": str() | int() as name, "aspects": [*titles]} if all(isinstance(one, str) for one in titles):
                plans[str(name)] = ", ".join(map(str, titles))
            case _:
                raise DataError(f'{where}, is not of the form {{"id": ..., "aspects": [...]}}.')
    return plans
