"""User context in prompts: none, the user's posts, a planner's aspects, or a persona.

Rubric aspects and narratives define the right answer, so only a judge with `oracle` sees aspects.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any, overload

import polars as pl
from pluralbench_rewards import Group, Person
from pluralbench_rewards.contract import MODEL_FIELDS
from pluralbench_rewards.judge_prompts import WORDINGS as PERSONA_WORDINGS
from pluralbench_rewards.judge_prompts import demonstration_block, persona_block
from pluralbench_runs import digest
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of, render_posts

from pluralbench.config import Profile, PromptConfig
from pluralbench.config.judges import AnswerLanguage, Oracle
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.history import History
from pluralbench.data.personas import UserPersona, json_lines, read_personas
from pluralbench.errors import DataError

KNOWN = ("profile", "persona", "earlier")
"""Columns of items that describe the person; groups never contain the rubric aspects."""
BATCH_GROUPS = 2048  # groups whose texts are Python objects at a time
POSTS = "Posts I wrote earlier:\n{posts}"
PLAN = "What I expect of an answer: {plan}"
ORACLE = "What this person expects of an answer:\n{aspects}"
ASKED_IN = "The question is in {question}, and the answer should be in {answer}."
TRANSLATED = "The question asks for a translation from {question} into {answer}."
# Fixed words begin here, which spelling rules leave alone.
WORDINGS = {
    "posts": POSTS,
    "post": render_posts([{"category": "{category}", "text": "{text}"}])[0],
    "plan": PLAN,
    "told": MODEL_FIELDS,
    "oracle": ORACLE,
    "asked_in": ASKED_IN,
    "translated": TRANSLATED,
}
# Fixed words end here.


def prompts_digest(profile: Profile) -> str:
    """Return the SHA-256 of the wordings above, with those of personas if the profile is "persona"."""
    return digest(WORDINGS | (PERSONA_WORDINGS if profile == "persona" else {}))


@dataclass(frozen=True)
class UserContext:
    """User data from files, by the id of an item or its person, and what of it prompts show."""

    prompt: PromptConfig = field(default_factory=PromptConfig)
    plans: Mapping[str, str] = field(default_factory=dict)
    personas: Mapping[str, UserPersona] = field(default_factory=dict)
    history: History = field(default_factory=History)

    def persona(self, item: Mapping[str, Any]) -> UserPersona | None:
        """Return the persona from the file (of the item, else of its person), else from the data."""
        from_file = self.personas.get(item["id"]) or self.personas.get(item["person"])
        return from_file or (UserPersona(tuple(item["persona"])) if item["persona"] else None)

    def posts(self, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the posts of an item's person, or else the questions of their earlier pairs."""
        return item["profile"] or self.history.questions(item)


class ItemGroups(Sequence[Group]):
    """Groups of items. Those read by index stay for a batch; in a loop each is made when its turn comes."""

    def __init__(self, items: pl.DataFrame, make: Callable[[pl.DataFrame], Iterator[Group]]) -> None:
        self._items, self._make = items, make
        self._first, self._made = 0, list[Group]()

    def __len__(self) -> int:
        return self._items.height

    @overload
    def __getitem__(self, index: int) -> Group: ...

    @overload
    def __getitem__(self, index: slice) -> list[Group]: ...

    def __getitem__(self, index: int | slice) -> Group | list[Group]:
        if isinstance(index, slice):
            return [*self._make(self._items[index])]
        place = range(len(self))[index]
        if not self._first <= place < self._first + len(self._made):
            follows = place == self._first + len(self._made)
            self._first, self._made = place, [*self._make(self._items.slice(place, BATCH_GROUPS if follows else 1))]
        return self._made[place - self._first]

    def __iter__(self) -> Iterator[Group]:
        return chain.from_iterable(map(self._make, self._items.iter_slices(BATCH_GROUPS)))


def items_to_groups(
    items: pl.DataFrame,
    context: UserContext,
    *,
    several_configs: bool,
    full_context: bool = False,
    blocks: pl.Series | None = None,
) -> Sequence[Group]:
    """Convert items to groups, with the user context as data and as text.

    Args:
        items: Items with the columns of `ITEMS`.
        context: User data, and what of it prompts show.
        several_configs: Start the ids of groups with their config.
        full_context: Give groups all data about the person, not only what the prompt shows.
        blocks: Block of each item. Default: all items are one block.

    Raises:
        DataError: If an item lacks the user context that the prompt shows.
    """

    def make(part: pl.DataFrame) -> Iterator[Group]:
        for item in part.iter_rows(named=True):
            yield Group(
                f"{item['config']}/{item['id']}" if several_configs else item["id"],
                item["prompt"],
                item["responses"],
                build_person(item, context, full_context=full_context),
                context_blocks(item, context),
                block=item["block"],
            )

    needed = items.select("config", "id", "person", "prompt", "responses", *KNOWN)
    if context.prompt.profile != "none":  # an item without the context is refused before any is scored
        shown = {"raw": "profile", "persona": "persona"}.get(context.prompt.profile)
        has_none = pl.lit(value=True) if shown is None else pl.col(shown).list.len().fill_null(0) == 0
        for item in needed.drop("responses").filter(has_none).iter_rows(named=True):
            context_blocks(item, context)
    return ItemGroups(needed.with_columns((pl.lit(0) if blocks is None else blocks).alias("block")), make)


def up_to_each_step(group: Group) -> Group:
    """Return a group whose responses are one answer up to each of its steps, from one with the steps as responses."""
    steps = group.responses
    return replace(group, responses=["\n\n".join(steps[: end + 1]) for end in range(len(steps))], steps=steps)


def build_person(item: Mapping[str, Any], context: UserContext, *, full_context: bool = False) -> Person:
    """Return the user of an item as data: what the prompt shows, or with `full_context` all posts and the persona.

    No model gets more context than the run records. With posts the data includes the persona, since personalized models
    read both. It always has the id (the user, or the item if there is no column of users) and the earlier pairs, which
    a run records.
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
    """Return the user context of an item as text: one block per post, or one block for a plan or persona.

    It is empty for `profile="none"`, and for people without earlier pairs if their questions are the posts.

    Raises:
        DataError: If the posts, the plan or the persona is missing.
    """
    prompt = context.prompt
    if prompt.profile == "none":
        return ()
    if prompt.profile == "plan":
        if item["id"] not in context.plans:
            raise DataError(f'The plans file has no id {item["id"]}; add it, or choose `profile="none"`.')
        return (PLAN.format(plan=context.plans[item["id"]]),)
    if prompt.profile == "persona":
        return (persona_block(_persona(item, context).sentences),)
    posts = context.posts(item)
    if not posts and item["earlier"] is not None:
        return ()
    if not posts:
        raise DataError(
            f'The item {item["id"]} has no posts; name their column with `columns=["profile=COLUMN"]`, or choose '
            '`profile="none"`.'
        )
    first, *others = render_posts(posts[: prompt.profile_size])
    return (POSTS.format(posts=first), *others)


def _persona(item: Mapping[str, Any], context: UserContext) -> UserPersona:
    persona = context.persona(item)
    if persona is None:
        fix = "add it to the file" if context.personas else "pass a file with `personas=...`"
        raise DataError(
            f"The item {item['id']} (person {item['person']}) has no persona; {fix}, name a column with "
            '`columns=["persona=COLUMN"]`, or choose `profile="none"`.'
        )
    return persona


def judge_context(item: Mapping[str, Any], context: UserContext, *, oracle: Oracle | None) -> str:
    """Return the user context that a judge sees next to the question of an item.

    A persona is followed by its demonstrations, as in SynthesizeMe. Rubric aspects come last if there is an `oracle`;
    that of Personalized RewardBench (appendix A.4) sees posts and aspects.

    Raises:
        DataError: If the item lacks the user context or the aspects.
    """
    blocks = ["\n".join(context_blocks(item, context))]
    if context.prompt.profile == "persona":
        blocks += map(demonstration_block, _persona(item, context).demonstrations)
    if oracle:
        blocks.append(ORACLE.format(aspects=rubric_text(item, oracle)))
    return "\n\n".join(text for text in blocks if text)


def rubric_text(item: Mapping[str, Any], oracle: Oracle) -> str:
    """Return the rubric aspects of an item, one per line; raises `DataError` if it has none."""
    if not item["aspects"]:
        raise DataError(f"The item {item['id']} has no rubric aspects; leave out `oracle=...`.")
    return "\n".join(_aspect(aspect, oracle) for aspect in item["aspects"])


def language_context(benchmark: Benchmark, config: str, subset: str, answer_language: AnswerLanguage) -> str:
    """Return a sentence about the languages of an item's question and answer; "" if they are unknown.

    The answer's language is the question's, or English for code, or for every answer if `answer_language` is "english",
    as in the authors' runner of M-RewardBench.
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
    """Read the plans of a prompt configuration.

    Raises:
        DataError: If only one of `profile="plan"` and `plans` is set, or the file has another form.
    """
    if (prompt.profile == "plan") != (prompt.plans is not None):
        raise DataError('`profile="plan"` and `plans=...` require each other; pass both or neither.')
    return {} if prompt.plans is None else read_plans(prompt.plans)


def load_user_personas(prompt: PromptConfig) -> dict[str, UserPersona]:
    """Read the personas of a prompt configuration.

    Raises:
        DataError: If the profile is not "persona", or the file has another form.
    """
    if prompt.personas is None:
        return {}
    if prompt.profile != "persona":
        raise DataError('`personas=...` requires `profile="persona"`; pass both, or leave out the file.')
    return read_personas(prompt.personas)


def read_plans(path: Path) -> dict[str, str]:
    """Read inferred aspects by item id, from `plan`'s folder or JSON Lines with `id` and `aspects` (a list or a text).

    Raises:
        DataError: If a line has another form; the message names it.
    """
    plans: dict[str, str] = {}
    for where, value in json_lines(path, "plans.jsonl"):
        match value:
            case {"id": str() | int() as name, "aspects": str() as aspects}:
                plans[str(name)] = aspects
            case {"id": str() | int() as name, "aspects": [*titles]} if all(isinstance(one, str) for one in titles):
                plans[str(name)] = ", ".join(map(str, titles))
            case _:
                raise DataError(f'{where}: the line does not have the form {{"id": ..., "aspects": [...]}}.')
    return plans
