"""Training data of a reward model: rankings, their pairs, and batches in which no response occurs twice."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Group, Message
from pluralbench_runs import rng_for

from pluralbench_local.conversations import Template, named, tokenize
from pluralbench_local.errors import TrainingError
from pluralbench_local.packing import Tokens
from pluralbench_local.training_job import check_unique_ids


@dataclass(frozen=True)
class Ranking:
    """A prompt with ranked responses.

    Attributes:
        id: Id of the ranking.
        prompt: Messages with `role` and `content`; the last is the user's.
        responses: The responses.
        rank: Rank of each response. A lower rank is better; tied responses share a rank.
        pairs: (better, worse) indices of responses to learn from. Default: all pairs of different rank.
    """

    id: str
    prompt: Sequence[Message]
    responses: Sequence[str]
    rank: Sequence[int]
    pairs: Sequence[tuple[int, int]] | None = None

    def pairs_to_learn(self) -> list[tuple[int, int]]:
        """Return the (better, worse) pairs to learn from."""
        return pairs_of(self.rank) if self.pairs is None else list(self.pairs)

    def pairs_among(self, responses: Sequence[int]) -> list[tuple[int, int]]:
        """Return the pairs whose responses are both in `responses`, as positions in it."""
        position = {response: number for number, response in enumerate(responses)}
        return [(position[a], position[b]) for a, b in self.pairs_to_learn() if a in position and b in position]


@dataclass(frozen=True)
class Batch:
    """Responses that are encoded together, as (ranking, response), and all pairs that are complete in the batch."""

    members: list[tuple[int, int]]
    pairs: list[tuple[int, int]]


def batches(rankings: Sequence[Ranking], size: int, seed: int, epoch: int) -> list[Batch]:
    """Draw the batches of an epoch by greedy sample-based batching (CHEEMS, section 5).

    Each batch has a pair, and no response is in two. The responses of a ranking stay together if they fit into one
    batch, so that only a ranking of more than `size` responses loses pairs; each epoch splits it differently. A
    response without a pair fills a batch with room, where only the regularizer uses it, or is left out. A ranking whose
    responses are all tied is not used. The paper's code fills batches in the order of the prompts and loses the pairs
    of a prompt that does not fit; here a prompt goes to the fullest batch with room for all of it.
    """
    filled = _Batches(size)
    fillers: deque[tuple[int, int]] = deque()
    drawn = [(rng_for(seed, "batches", epoch, ranking.id), index) for index, ranking in enumerate(rankings)]
    for _, index, rng in sorted((rng.random(), index, rng) for rng, index in drawn):
        for part in _split_responses(rankings[index].rank, size, rng):
            members = [(index, response) for response in part]
            if rankings[index].pairs_among(part):
                filled.add(members)
            else:
                fillers += members
    member_lists = filled.batches
    for members in member_lists:
        while fillers and len(members) < size:
            members.append(fillers.popleft())
    rng_for(seed, "order of batches", epoch).shuffle(member_lists)
    return [Batch(members, _pairs(members, rankings)) for members in member_lists]


@dataclass(frozen=True)
class Data:
    """Tokenized rankings, without responses that are too long; `lost` is the number that so lost all their pairs."""

    rankings: list[Ranking]
    tokens: list[list[Tokens]]
    too_long: int
    lost: int

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return sum(len(ranking.pairs_to_learn()) for ranking in self.rankings)

    @property
    def responses(self) -> int:
        """Number of responses."""
        return sum(len(ranking.responses) for ranking in self.rankings)

    @property
    def members(self) -> list[tuple[int, int]]:
        """(ranking, response) indices of all responses."""
        return [(ranking, response) for ranking, tokens in enumerate(self.tokens) for response in range(len(tokens))]

    def counts(self) -> dict[str, int]:
        """Return the numbers of rankings, responses and pairs, and of those dropped because they are too long."""
        return {
            "rankings": len(self.rankings),
            "responses": self.responses,
            "pairs": self.pairs,
            "responses_too_long": self.too_long,
            "rankings_too_long": self.lost,
        }

    def epoch_counts(self, epoch: Sequence[Batch]) -> dict[str, int]:
        """Return what an epoch uses. `fillers` are responses without a pair in their batch."""
        pairs, used = sum(len(batch.pairs) for batch in epoch), sum(len(batch.members) for batch in epoch)
        paired = sum(len({member for pair in batch.pairs for member in pair}) for batch in epoch)
        return {
            "batches": len(epoch),
            "pairs": pairs,
            "pairs_lost": self.pairs - pairs,
            "responses": used,
            "fillers": used - paired,
            "responses_left_out": self.responses - used,
        }


def check(rankings: Sequence[Ranking], what: str) -> None:
    """Check rankings before training; `what` they are for errors ("rankings", "held-out rankings").

    Raises:
        TrainingError: If ids repeat, a ranking is inconsistent, or there is no pair.
    """
    check_unique_ids((ranking.id for ranking in rankings), "rankings")
    for ranking in rankings:
        if len(ranking.responses) != len(ranking.rank):
            raise TrainingError(
                f"The ranking {ranking.id} has {len(ranking.responses)} responses and {len(ranking.rank)} ranks; "
                "give each response a rank."
            )
        empty = next((index for index, text in enumerate(ranking.responses) if not text.strip()), None)
        if empty is not None:
            raise TrainingError(f"Response {empty + 1} of the ranking {ranking.id} is empty; leave it out.")
        for better, worse in ranking.pairs or ():
            if max(better, worse) >= len(ranking.rank) or ranking.rank[better] >= ranking.rank[worse]:
                raise TrainingError(
                    f"({better}, {worse}) is not a pair of a better and a worse response of the ranking {ranking.id}; "
                    "count responses from 0, and put the better one first."
                )
    if not any(ranking.pairs_to_learn() for ranking in rankings):
        raise TrainingError(
            f"None of the {len(rankings):,} {what} has two responses of different rank, so there is no pair."
        )


def tokenize_rankings(
    rankings: Sequence[Ranking], what: str, template: Template, limit: int, on_overflow: Literal["drop", "error"]
) -> Data:
    """Tokenize rankings, without the responses that are too long.

    Raises:
        TrainingError: If a response is too long where `on_overflow` is `error`, or no pair is left.
    """
    groups = [Group(ranking.id, ranking.prompt, [text]) for ranking in rankings for text in ranking.responses]
    tokenized = tokenize(groups, template, limit, "drop")
    long = [
        (group, len(result.conversations[0].ids))
        for group, result in zip(groups, tokenized, strict=True)
        if result.dropped
    ]
    if long and on_overflow == "error":
        raise TrainingError(_too_long_message(long, len(groups), template, limit))
    results = iter(tokenized)
    kept, tokens = [], []
    for ranking in rankings:
        ranking_results = [next(results) for _ in ranking.responses]
        short = [index for index, result in enumerate(ranking_results) if not result.dropped]
        pairs = ranking.pairs_among(short)
        if pairs:
            texts, rank = [ranking.responses[index] for index in short], [ranking.rank[index] for index in short]
            kept.append(replace(ranking, responses=texts, rank=rank, pairs=None if ranking.pairs is None else pairs))
            tokens.append([ranking_results[index].conversations[0] for index in short])
    with_pairs = sum(bool(ranking.pairs_to_learn()) for ranking in rankings)
    if not kept:
        raise TrainingError(
            f"None of the {len(rankings):,} {what} has two responses of different rank in at most {limit:,} tokens "
            f"({len(long):,} of {len(groups):,} responses are longer); raise `max_length=...`."
        )
    return Data(kept, tokens, len(long), with_pairs - len(kept))


def _too_long_message(long: Sequence[tuple[Group, int]], total: int, template: Template, limit: int) -> str:
    group, longest = max(long, key=lambda item: item[1])
    [opening] = template.encode([template.render(group.prompt, opening=True)])
    return (
        f"{len(long):,} of {total:,} responses make conversations of more than {limit:,} tokens (rankings "
        f"{named(group.id for group, _ in long)}), the longest {longest:,} ({len(opening):,} in the prompt of "
        f'{group.id}); raise `max_length=...`, or set `on_overflow="drop"`.'
    )


class _Batches:
    def __init__(self, size: int) -> None:
        self.size = size
        self.batches: list[list[tuple[int, int]]] = []
        self._with_room: dict[int, list[int]] = defaultdict(list)

    def add(self, members: list[tuple[int, int]]) -> None:
        """To the fullest batch that has room for all of them, or to a new one."""
        room = next((room for room in range(len(members), self.size + 1) if self._with_room[room]), None)
        if room is None:
            room, number = self.size, len(self.batches)
            self.batches.append([])
        else:
            number = self._with_room[room].pop()
        self.batches[number] += members
        self._with_room[room - len(members)].append(number)


def _split_responses(rank: Sequence[int], size: int, rng: Random) -> list[list[int]]:
    """Split responses into parts of at most `size`, full ones first, each with as many pairs as possible."""
    if len(set(rank)) < 2:
        return []
    if len(rank) <= size:
        return [list(range(len(rank)))]
    remaining: dict[int, list[int]] = defaultdict(list)
    for response in rng.sample(range(len(rank)), len(rank)):
        remaining[rank[response]].append(response)
    parts = []
    while any(remaining.values()):
        part: list[int] = []
        used: dict[int, int] = defaultdict(int)
        while len(part) < size and any(remaining.values()):
            # A response makes a pair with each response of another rank: balance the ranks of a part.
            ranks = (level for level in remaining if remaining[level])
            level = min(ranks, key=lambda level: (used[level], -len(remaining[level])))
            used[level] += 1
            part.append(remaining[level].pop())
        parts.append(part)
    return parts


def _pairs(members: Sequence[tuple[int, int]], rankings: Sequence[Ranking]) -> list[tuple[int, int]]:
    by_ranking: dict[int, list[int]] = defaultdict(list)
    for index, (ranking, _) in enumerate(members):
        by_ranking[ranking].append(index)
    pairs = []
    for ranking, indices in by_ranking.items():
        among = rankings[ranking].pairs_among([members[index][1] for index in indices])
        pairs += [(indices[a], indices[b]) for a, b in among]
    return pairs
