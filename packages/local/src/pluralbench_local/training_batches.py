"""What a reward model is trained on: rankings, their pairs, and batches in which no response comes twice."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Group, Message
from pluralbench_runs import rng_for

from pluralbench_local.conversations import NAMED, Template, tokenize
from pluralbench_local.errors import TrainingError
from pluralbench_local.packing import Tokens
from pluralbench_local.training_job import check_names


@dataclass(frozen=True)
class Ranking:
    """One prompt and the responses to it. rank: of each response, lower is better; who shares a rank is tied.

    prompt: messages with `role` and `content`, the user's last. pairs: (better, worse), places of the responses to
    learn from; without it each two of different rank.
    """

    id: str
    prompt: Sequence[Message]
    responses: Sequence[str]
    rank: Sequence[int]
    pairs: Sequence[tuple[int, int]] | None = None

    def learned(self) -> list[tuple[int, int]]:
        """The pairs to learn from."""
        return pairs_of(self.rank) if self.pairs is None else list(self.pairs)

    def among(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """The pairs of which both are in `places`, as positions there."""
        position = {place: number for number, place in enumerate(places)}
        return [(position[a], position[b]) for a, b in self.learned() if a in position and b in position]


@dataclass(frozen=True)
class Batch:
    """Responses that are encoded together. members: (ranking, response), places in what was given.

    pairs: (better, worse), places among the members: all pairs of each ranking that are both in the batch.
    """

    members: list[tuple[int, int]]
    pairs: list[tuple[int, int]]


def batches(rankings: Sequence[Ranking], size: int, seed: int, epoch: int) -> list[Batch]:
    """An epoch's batches of at most `size` responses, at least 2; each has a pair, and no response is in two.

    Greedy sample-based batching (CHEEMS, section 5). A ranking's responses stay together if they fit into one batch, so
    only a ranking of more than `size` responses loses pairs; each epoch splits it in another way. A response that then
    has no pair goes to a batch with room left, where it counts for the regulariser alone, or is left out if there is
    none. A ranking whose responses are all tied is never used. The paper's own code fills a batch in the order of the
    prompts and loses the pairs of each prompt that no longer fits; here a prompt goes to the fullest batch that has
    room for all of it.

    The order is drawn by `seed`, `epoch` and the rankings' ids, which have to differ.
    """
    filling = _Filling(size)
    left: deque[tuple[int, int]] = deque()
    drawn = [(rng_for(seed, "batches", epoch, ranking.id), place) for place, ranking in enumerate(rankings)]
    for _, place, draw in sorted((draw.random(), place, draw) for draw, place in drawn):
        for part in _parts(rankings[place].rank, size, draw):
            members = [(place, response) for response in part]
            if rankings[place].among(part):
                filling.add(members)
            else:
                left += members
    made = filling.batches
    for members in made:
        while left and len(members) < size:
            members.append(left.popleft())
    rng_for(seed, "order of batches", epoch).shuffle(made)
    return [Batch(members, _pairs(members, rankings)) for members in made]


@dataclass(frozen=True)
class Data:
    """Rankings of conversations that are short enough, and their tokens: [rankings][responses].

    too_long: responses that were dropped for their length. lost: rankings that lost all their pairs by that.
    """

    rankings: list[Ranking]
    tokens: list[list[Tokens]]
    too_long: int
    lost: int

    @property
    def pairs(self) -> int:
        """How many pairs the rankings have."""
        return sum(len(ranking.learned()) for ranking in self.rankings)

    @property
    def responses(self) -> int:
        """How many responses the rankings have."""
        return sum(len(ranking.responses) for ranking in self.rankings)

    @property
    def members(self) -> list[tuple[int, int]]:
        """Every response as (ranking, response)."""
        return [(ranking, response) for ranking, several in enumerate(self.tokens) for response in range(len(several))]

    def counts(self) -> dict[str, int]:
        """What there is, and what was dropped for its length."""
        return {
            "rankings": len(self.rankings),
            "responses": self.responses,
            "pairs": self.pairs,
            "responses_too_long": self.too_long,
            "rankings_too_long": self.lost,
        }

    def spent(self, epoch: Sequence[Batch]) -> dict[str, int]:
        """What an epoch uses. fillers: responses without a pair in their batch; left out are those in no batch."""
        pairs, used = sum(len(batch.pairs) for batch in epoch), sum(len(batch.members) for batch in epoch)
        paired = sum(len({place for pair in batch.pairs for place in pair}) for batch in epoch)
        return {
            "batches": len(epoch),
            "pairs": pairs,
            "pairs_lost": self.pairs - pairs,
            "responses": used,
            "fillers": used - paired,
            "responses_left_out": self.responses - used,
        }


def check(rankings: Sequence[Ranking], what: str) -> None:
    """Raise `TrainingError` for the first ranking that contradicts itself, and where no two responses differ in rank.

    what: the rankings' name in a sentence.
    """
    check_names((ranking.id for ranking in rankings), "rankings")
    for ranking in rankings:
        if len(ranking.responses) != len(ranking.rank):
            raise TrainingError(
                f"The ranking {ranking.id} has {len(ranking.responses)} responses and {len(ranking.rank)} ranks; "
                "give each response a rank."
            )
        empty = next((place for place, text in enumerate(ranking.responses) if not text.strip()), None)
        if empty is not None:
            raise TrainingError(f"Response {empty + 1} of the ranking {ranking.id} is empty; leave it out.")
        for better, worse in ranking.pairs or ():
            if not {better, worse} <= set(range(len(ranking.rank))):
                raise TrainingError(f"The ranking {ranking.id} has a pair of a response that it does not have.")
            if ranking.rank[better] >= ranking.rank[worse]:
                raise TrainingError(
                    f"The ranking {ranking.id} has the pair ({better}, {worse}), which its ranks do not order so."
                )
    if not any(ranking.learned() for ranking in rankings):
        raise TrainingError(
            f"None of the {len(rankings):,} {what} has two responses of different rank, so there is no pair."
        )


def fitting(
    rankings: Sequence[Ranking], what: str, template: Template, limit: int, on_overflow: Literal["drop", "error"]
) -> Data:
    """The rankings in tokens, without the responses that make conversations of more than `limit` tokens.

    Raises `TrainingError` when there is one under `error`, and when no pair is left.
    """
    alone = [Group(ranking.id, ranking.prompt, [text]) for ranking in rankings for text in ranking.responses]
    tokenized = tokenize(alone, template, limit, "drop")
    long = [
        (group, len(result.conversations[0].ids))
        for group, result in zip(alone, tokenized, strict=True)
        if result.dropped
    ]
    if long and on_overflow == "error":
        raise TrainingError(_too_long(long, len(alone), template, limit))
    results = iter(tokenized)
    kept, tokens = [], []
    for ranking in rankings:
        own = [next(results) for _ in ranking.responses]
        short = [place for place, result in enumerate(own) if not result.dropped]
        pairs = ranking.among(short)
        if pairs:
            texts, rank = [ranking.responses[place] for place in short], [ranking.rank[place] for place in short]
            kept.append(replace(ranking, responses=texts, rank=rank, pairs=None if ranking.pairs is None else pairs))
            tokens.append([own[place].conversations[0] for place in short])
    had = sum(bool(ranking.learned()) for ranking in rankings)
    if not kept:
        raise TrainingError(
            f"None of the {len(rankings):,} {what} has two responses of different rank in at most {limit:,} tokens "
            f"({len(long):,} of {len(alone):,} responses take more); raise max_length if the model can take it."
        )
    return Data(kept, tokens, len(long), had - len(kept))


def _too_long(long: Sequence[tuple[Group, int]], among: int, template: Template, limit: int) -> str:
    group, most = max(long, key=lambda item: item[1])
    [opening] = template.encode([template.render(group.prompt, opening=True)])
    names = list(dict.fromkeys(group.id for group, _ in long))
    ids = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    return (
        f"{len(long):,} of {among:,} responses make conversations of more than {limit:,} tokens (rankings {ids}), the "
        f"longest of {most:,}, of which the prompt of {group.id} is {len(opening):,}; raise max_length if the model "
        "can take it, or choose on_overflow drop."
    )


class _Filling:
    """Batches while they are filled."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.batches: list[list[tuple[int, int]]] = []
        self._with_room: dict[int, list[int]] = defaultdict(list)

    def add(self, members: list[tuple[int, int]]) -> None:
        """Put all of these into the fullest batch that has room for them, or into a new one."""
        room = next((room for room in range(len(members), self.size + 1) if self._with_room[room]), None)
        if room is None:
            room, number = self.size, len(self.batches)
            self.batches.append([])
        else:
            number = self._with_room[room].pop()
        self.batches[number] += members
        self._with_room[room - len(members)].append(number)


def _parts(rank: Sequence[int], size: int, draw: Random) -> list[list[int]]:
    """The responses in parts of at most `size`, full ones first, each with as many pairs as it can get."""
    if len(set(rank)) < 2:
        return []
    if len(rank) <= size:
        return [list(range(len(rank)))]
    left: dict[int, list[int]] = defaultdict(list)
    for response in draw.sample(range(len(rank)), len(rank)):
        left[rank[response]].append(response)
    parts = []
    while any(left.values()):
        part: list[int] = []
        taken: dict[int, int] = defaultdict(int)
        while len(part) < size and any(left.values()):
            # A response makes a pair with each of the part that is not of its rank.
            level = min((level for level in left if left[level]), key=lambda level: (taken[level], -len(left[level])))
            taken[level] += 1
            part.append(left[level].pop())
        parts.append(part)
    return parts


def _pairs(members: Sequence[tuple[int, int]], rankings: Sequence[Ranking]) -> list[tuple[int, int]]:
    together: dict[int, list[int]] = defaultdict(list)
    for place, (ranking, _) in enumerate(members):
        together[ranking].append(place)
    found = []
    for ranking, places in together.items():
        pairs = rankings[ranking].among([members[place][1] for place in places])
        found += [(places[a], places[b]) for a, b in pairs]
    return found
