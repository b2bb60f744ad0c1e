"""Two options for each item, one of which is the person's own, by the rules of the paper (A.2).

Every draw is named after what it is for and what is drawn, so the order of a source's rows changes nothing, and a row
more changes next to nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, TypeVar

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import rng_for
from pluralbench_schemas import PersonaItems

from build_persona_judge.persona import Rendered

ITEMS = PersonaItems.row_types()
T = TypeVar("T")
LeftOut = tuple[str, str, str]
"""What was left out ("response", "essay", ...), its id, and why."""


@dataclass(frozen=True)
class Pair:
    """The person's own option and another one. person: whose persona it is, `user` unless a user has several."""

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
    """A model's response to a person's question, and how the person scored it."""

    interaction: str
    number: int
    user: str
    question: str
    model: str
    text: str
    score: float


@dataclass(frozen=True)
class Wave:
    """A survey: its binary questions with both options, and who answered what. persons: of each respondent."""

    name: str
    questions: Mapping[str, tuple[str, tuple[str, str]]]
    answers: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Essay:
    """What a person wrote about an article, and how it moved them."""

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
        """The question and the answer, as they are shown."""
        return f"Question: {self.question}\nAnswer: {self.text}"


def by_score(
    responses: Iterable[Response], *, size: int | None, tie_gap: float, seed: int
) -> tuple[list[Pair], list[LeftOut]]:
    """PRISM: the response that was scored highest and another one, drawn, of each interaction in their order.

    Ends with the `size`th pair that is no tie; the ties on the way are kept. Of several highest ones one is drawn.
    """
    pairs: list[Pair] = []
    left_out: list[LeftOut] = []
    untied = 0
    for interaction, group in _grouped(responses, lambda response: (response.number, response.interaction)):
        ordered = sorted(group, key=lambda response: (response.model, response.text, response.score))
        rng_for(seed, "prism", interaction[1]).shuffle(ordered)
        chosen = max(ordered, key=lambda response: response.score)
        others = [response for response in ordered if response.text != chosen.text]
        if not others:
            left_out.append(("interaction", chosen.interaction, "fewer than two responses are left"))
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
    return pairs, left_out


def by_answer(waves: Iterable[Wave], *, respondents: int, seed: int) -> list[Pair]:
    """OpinionQA: of each wave one of the binary questions that enough people answered, and `respondents` of these.

    A respondent of `Wave.answers` is the key of a persona; the user is what stands after its last blank.
    """
    pairs = []
    for wave in sorted(waves, key=lambda wave: wave.name):
        answered = {key: len(wave.answers.get(key, {})) for key in sorted(wave.questions)}
        enough = [key for key, people in answered.items() if people >= respondents]
        if not enough:
            raise SourceError(
                f"No question of {wave.name} that has two options was answered by {respondents} respondents "
                f"({max(answered.values(), default=0)} at most); lower `respondents` under [opinion_qa]."
            )
        [key] = _drawn(enough, 1, seed, "question", wave.name)
        text, options = wave.questions[key]
        for person in _drawn(wave.answers[key], respondents, seed, "respondents", wave.name):
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


def by_author(
    essays: Iterable[Essay], *, pairs_per_article: int, size: int | None, tie_gap: float, tie_share: float, seed: int
) -> list[Pair]:
    """Empathic Conversations: two people's essays about one article; a draw says which of the two is the person.

    Of each article exactly `pairs_per_article` pairs that are no tie, fewer where there are no more, and `size` of
    these in all; then ties, as many as `tie_share` of all items allows, drawn from all articles.
    """
    untied, ties = [], []
    for article, group in _grouped(essays, lambda essay: essay.article):
        by_user = sorted(group, key=lambda essay: essay.user)
        possible = [_authors(first, second, tie_gap, seed) for first, second in combinations(by_user, 2)]
        untied += _drawn_pairs([pair for pair in possible if not pair.tie], pairs_per_article, seed, "article", article)
        ties += [pair for pair in possible if pair.tie]
    if size is not None:
        if len(untied) < size:
            raise _too_few("empathic_conversations", len(untied), size)
        untied = _drawn_pairs(untied, size, seed, "empathic_conversations")
    allowed = int(tie_share * len(untied) / (1 - tie_share) + 1e-9)
    return sorted([*untied, *_drawn_pairs(ties, allowed, seed, "ties")], key=lambda pair: pair.id)


def _authors(first: Essay, second: Essay, tie_gap: float, seed: int) -> Pair:
    if rng_for(seed, "empathic_conversations", "first", first.article, first.user, second.user).random() < 0.5:
        first, second = second, first
    # Scores are means with a few digits, so 5.667 and 3.667 are 2 apart.
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


def by_likeness(
    posts: Iterable[Post], likeness: Mapping[str, tuple[Mapping[str, float], str]], *, size: int | None, seed: int
) -> tuple[list[Pair], list[LeftOut]]:
    """Personal Reddit: a person's post, and one on another question by whoever of the others is most like them.

    likeness: by user the scores of all others, higher for more alike, and the key of the call that gave them.
    """
    ordered = sorted(posts, key=lambda post: post.id)
    by_user = dict(_grouped(ordered, lambda post: post.user))
    pairs: list[Pair] = []
    left_out: list[LeftOut] = []
    for post in ordered:
        scores, call = likeness[post.user]
        nearest = sorted((user for user in scores if user != post.user), key=lambda user: (-scores[user], user))
        for user in nearest:
            others = [other for other in by_user[user] if other.question != post.question]
            if others:
                break
        else:
            left_out.append(("post", post.id, "nobody else answered another question"))
            continue
        [other] = _drawn(others, 1, seed, "other", post.id, named=lambda other: other.id)
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
    return drawn(pairs, size, seed, "personal_reddit"), left_out


def drawn(pairs: Sequence[Pair], size: int | None, seed: int, task: str) -> list[Pair]:
    """Exactly `size` of the pairs that are no tie, and all ties; everything where `size` is None."""
    if size is None:
        return list(pairs)
    untied = [pair for pair in pairs if not pair.tie]
    if len(untied) < size:
        raise _too_few(task, len(untied), size)
    kept = {pair.id for pair in _drawn_pairs(untied, size, seed, task)}
    return [pair for pair in pairs if pair.tie or pair.id in kept]


def items(task: str, kind: str, pairs: Sequence[Pair], personas: Mapping[str, Rendered], seed: int) -> pl.DataFrame:
    """The items of a task (`pluralbench_schemas.PersonaItems`), whose own option is A or B by seed and id."""
    return pl.DataFrame([_item(task, kind, pair, personas, seed) for pair in pairs], schema=ITEMS)


def _item(task: str, kind: str, pair: Pair, personas: Mapping[str, Rendered], seed: int) -> dict[str, object]:
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


def _grouped(rows: Iterable[T], key: Callable[[T], Any]) -> Iterator[tuple[Any, list[T]]]:
    """The rows of each key, in the order of the keys."""
    for value, group in groupby(sorted(rows, key=key), key=key):
        yield value, list(group)


def _drawn(rows: Iterable[T], size: int, seed: int, *what: str, named: Callable[[T], str] = str) -> list[T]:
    """At most `size` of the rows, drawn by their names and given in the order of these."""
    by_name = {named(row): row for row in rows}
    order = sorted(by_name, key=lambda name: (rng_for(seed, "draw", *what, name).random(), name))
    return [by_name[name] for name in sorted(order[:size])]


def _drawn_pairs(pairs: Iterable[Pair], size: int, seed: int, *what: str) -> list[Pair]:
    return _drawn(pairs, size, seed, *what, named=lambda pair: pair.id)


def _too_few(task: str, there: int, size: int) -> SourceError:
    return SourceError(f"The task {task} has {there:,} pairs that are no tie where `size` asks for {size:,}; lower it.")
