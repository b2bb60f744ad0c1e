"""Pair a person's own option with another one for each item, by the rules of the paper (A.2).

Each random draw is seeded by its purpose and the drawn row. So the order of a source's rows does not matter, and an
additional row changes little.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, TypeVar

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import rng_for
from pluralbench_schemas import PERSONA_ITEMS

from build_persona_judge.persona import Persona

ITEMS = PERSONA_ITEMS.columns
T = TypeVar("T")
Dropped = tuple[str, str, str]
"""A dropped row: its kind ("response", "essay", ...), its id, and the reason."""


@dataclass(frozen=True)
class Pair:
    """A person's own option and another one.

    Attributes:
        context: Topic of both options.
        gap: Difference of the source's scores.
        calls: Keys of the recorded rankings.
        person: Key of the persona. Default: `user`.
    """

    id: str
    user: str
    context: str
    own: str
    other: str
    origin_own: str
    origin_other: str
    gap: float | None = None
    tie: bool = False
    calls: tuple[str, ...] = ()
    person: str | None = None


@dataclass(frozen=True)
class Response:
    """A model's response to a person's question, with the person's score."""

    interaction: str
    number: int
    user: str
    question: str
    model: str
    text: str
    score: float


@dataclass(frozen=True)
class Wave:
    """A wave of a survey, with the text and the two options of each question, and its answers by respondent."""

    name: str
    questions: Mapping[str, tuple[str, tuple[str, str]]]
    answers: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Essay:
    """A person's essay about an article, with empathy and distress scores."""

    article: str
    context: str
    user: str
    text: str
    empathy: float
    distress: float


@dataclass(frozen=True)
class Post:
    """A person's answer to a question."""

    id: str
    user: str
    question: str
    text: str

    @property
    def option(self) -> str:
        """The question and the answer as one text."""
        return f"Question: {self.question}\nAnswer: {self.text}"


def pair_by_score(
    responses: Iterable[Response], *, size: int | None, tie_gap: float, seed: int
) -> tuple[list[Pair], list[Dropped]]:
    """Pair the highest-scored response of each PRISM interaction with a random other one.

    Pairs with a difference of scores of `tie_gap` or less are ties. After `size` other pairs it stops; ties before that
    are kept. The seed also decides between several highest ones.

    Returns:
        The pairs in the order of the interactions; and the dropped interactions.

    Raises:
        SourceError: There are fewer than `size` pairs.
    """
    pairs: list[Pair] = []
    dropped: list[Dropped] = []
    untied = 0
    for interaction, group in _group_by(responses, lambda response: (response.number, response.interaction)):
        ordered = sorted(group, key=lambda response: (response.model, response.text, response.score))
        rng_for(seed, "prism", interaction[1]).shuffle(ordered)
        chosen = max(ordered, key=lambda response: response.score)
        others = [response for response in ordered if response.text != chosen.text]
        if not others:
            dropped.append(("interaction", chosen.interaction, "fewer than two responses are left"))
            continue
        gap = chosen.score - others[0].score
        pairs.append(
            Pair(
                id=chosen.interaction,
                user=chosen.user,
                context=chosen.question,
                own=chosen.text,
                other=others[0].text,
                origin_own=f"{chosen.model}, score {chosen.score:g}",
                origin_other=f"{others[0].model}, score {others[0].score:g}",
                gap=gap,
                tie=gap <= tie_gap,
            )
        )
        untied += gap > tie_gap
        if untied == size:
            break
    if size is not None and untied < size:
        raise _too_few("prism", untied, size)
    return pairs, dropped


def pair_by_answer(waves: Iterable[Wave], *, respondents: int, seed: int) -> list[Pair]:
    """Sample one binary question of each OpinionQA wave, and `respondents` of its respondents.

    A respondent in `Wave.answers` is the key of a persona. The user is the part after its last space.

    Raises:
        SourceError: No question of a wave has enough respondents.
    """
    pairs = []
    for wave in sorted(waves, key=lambda wave: wave.name):
        answered = {key: len(wave.answers.get(key, {})) for key in sorted(wave.questions)}
        eligible = [key for key, people in answered.items() if people >= respondents]
        if not eligible:
            raise SourceError(
                f"No question of {wave.name} with two options has {respondents} respondents "
                f"(at most {max(answered.values(), default=0)}); lower `opinion_qa.respondents=...`."
            )
        [key] = _sample(eligible, 1, seed, "question", wave.name)
        text, options = wave.questions[key]
        for person in _sample(wave.answers[key], respondents, seed, "respondents", wave.name):
            own = wave.answers[key][person]
            user = person.rpartition(" ")[2]
            pairs.append(
                Pair(
                    id=f"{key}-{user}",
                    user=user,
                    context=text,
                    own=own,
                    other=options[own == options[0]],
                    origin_own=f"{wave.name} {key}, their answer",
                    origin_other=f"{wave.name} {key}, the other option",
                    person=person,
                )
            )
    return pairs


def pair_by_author(
    essays: Iterable[Essay], *, pairs_per_article: int, size: int | None, tie_gap: float, tie_share: float, seed: int
) -> list[Pair]:
    """Pair two people's essays about one article of Empathic Conversations; one of the two is the person at random.

    Pairs with a smaller difference of empathy or distress than `tie_gap` are ties, sampled from all articles. The
    limits `pairs_per_article` and `size` are of the other pairs, `tie_share` is the maximum share of ties.

    Raises:
        SourceError: There are fewer than `size` pairs.
    """
    untied, ties = [], []
    for article, group in _group_by(essays, lambda essay: essay.article):
        by_user = sorted(group, key=lambda essay: essay.user)
        possible = [_pair_essays(first, second, tie_gap, seed) for first, second in combinations(by_user, 2)]
        untied += _sample_pairs(
            [pair for pair in possible if not pair.tie], pairs_per_article, seed, "article", article
        )
        ties += [pair for pair in possible if pair.tie]
    if size is not None:
        if len(untied) < size:
            raise _too_few("empathic_conversations", len(untied), size)
        untied = _sample_pairs(untied, size, seed, "empathic_conversations")
    allowed = int(tie_share * len(untied) / (1 - tie_share) + 1e-9)
    return sorted([*untied, *_sample_pairs(ties, allowed, seed, "ties")], key=lambda pair: pair.id)


def _pair_essays(first: Essay, second: Essay, tie_gap: float, seed: int) -> Pair:
    if rng_for(seed, "empathic_conversations", "first", first.article, first.user, second.user).random() < 0.5:
        first, second = second, first
    # Scores are means with few digits: the gap of 5.667 and 3.667 is 2.
    gap = round(min(abs(first.empathy - second.empathy), abs(first.distress - second.distress)), 6)
    return Pair(
        id=f"{first.article}-{first.user}-{second.user}",
        user=first.user,
        context=first.context,
        own=first.text,
        other=second.text,
        origin_own=f"essay of {first.user}, empathy {first.empathy:g}, distress {first.distress:g}",
        origin_other=f"essay of {second.user}, empathy {second.empathy:g}, distress {second.distress:g}",
        gap=gap,
        tie=gap < tie_gap,
    )


def pair_by_similarity(
    posts: Iterable[Post], similarity: Mapping[str, tuple[Mapping[str, float], str]], *, size: int | None, seed: int
) -> tuple[list[Pair], list[Dropped]]:
    """Pair each Personal Reddit post with a post on another question by the most similar person.

    `similarity` has, by user, the scores of all other users (higher is more similar) and the key of the recorded call.

    Returns:
        The pairs; and the dropped posts.

    Raises:
        SourceError: There are fewer than `size` pairs.
    """
    ordered = sorted(posts, key=lambda post: post.id)
    by_user = dict(_group_by(ordered, lambda post: post.user))
    pairs: list[Pair] = []
    dropped: list[Dropped] = []
    for post in ordered:
        scores, call = similarity[post.user]
        nearest = sorted((user for user in scores if user != post.user), key=lambda user: (-scores[user], user))
        for user in nearest:
            others = [other for other in by_user[user] if other.question != post.question]
            if others:
                break
        else:
            dropped.append(("post", post.id, "nobody else answered another question"))  # codespell:ignore nobody
            continue
        [other] = _sample(others, 1, seed, "other", post.id, key=lambda other: other.id)
        pairs.append(
            Pair(
                id=post.id,
                user=post.user,
                context="",
                own=post.option,
                other=other.option,
                origin_own=f"{post.user}, post {post.id}",
                origin_other=f"{user}, post {other.id}, likeness {scores[user]:.4f}",
                calls=(call,),
            )
        )
    return sample_pairs(pairs, size, seed, "personal_reddit"), dropped


def sample_pairs(pairs: Sequence[Pair], size: int | None, seed: int, task: str) -> list[Pair]:
    """Sample exactly `size` of the pairs that are not ties, and keep all ties; keep all pairs if `size` is None."""
    if size is None:
        return list(pairs)
    untied = [pair for pair in pairs if not pair.tie]
    if len(untied) < size:
        raise _too_few(task, len(untied), size)
    sampled = {pair.id for pair in _sample_pairs(untied, size, seed, task)}
    return [pair for pair in pairs if pair.tie or pair.id in sampled]


def make_items(task: str, kind: str, pairs: Sequence[Pair], personas: Mapping[str, Persona], seed: int) -> pl.DataFrame:
    """Make a task's items (columns of `PERSONA_ITEMS`); seed and id decide whether the own option is A or B."""
    return pl.DataFrame([_make_item(task, kind, pair, personas, seed) for pair in pairs], schema=ITEMS)


def _make_item(task: str, kind: str, pair: Pair, personas: Mapping[str, Persona], seed: int) -> dict[str, object]:
    options = [(pair.own, pair.origin_own), (pair.other, pair.origin_other)]
    first = rng_for(seed, "placement", task, pair.id).random() < 0.5
    (option_a, origin_a), (option_b, origin_b) = options if first else options[::-1]
    return {
        "id": pair.id,
        "task": task,
        "kind": kind,
        "user": pair.user,
        "persona": personas[pair.person or pair.user],
        "context": pair.context,
        "option_a": option_a,
        "option_b": option_b,
        "truth": "tie" if pair.tie else "A" if first else "B",
        "origin_a": origin_a,
        "origin_b": origin_b,
        "gap": pair.gap,
        "rank_calls": list(pair.calls),
    }


def _group_by(rows: Iterable[T], key: Callable[[T], Any]) -> Iterator[tuple[Any, list[T]]]:
    """Group rows by key, in the order of the keys."""
    for value, group in groupby(sorted(rows, key=key), key=key):
        yield value, list(group)


def _sample(rows: Iterable[T], size: int, seed: int, *what: str, key: Callable[[T], str] = str) -> list[T]:
    """Sample at most `size` rows by their keys; return them in the order of the keys."""
    by_name = {key(row): row for row in rows}
    order = sorted(by_name, key=lambda name: (rng_for(seed, "draw", *what, name).random(), name))
    return [by_name[name] for name in sorted(order[:size])]


def _sample_pairs(pairs: Iterable[Pair], size: int, seed: int, *what: str) -> list[Pair]:
    return _sample(pairs, size, seed, *what, key=lambda pair: pair.id)


def _too_few(task: str, available: int, size: int) -> SourceError:
    return SourceError(
        f"The task {task} has only {available:,} pairs that are not ties, fewer than `size={size}`; lower it."
    )
