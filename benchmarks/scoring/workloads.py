"""Random conversations in the shapes of benchmarks, with realistically skewed lengths."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from random import Random
from statistics import NormalDist

from pluralbench_runs import rng_for

from scoring.protocol import Conversations

ONSETS = ["b", "br", "d", "f", "g", "gl", "h", "k", "kr", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "w"]
NUCLEI = ["a", "ai", "e", "ee", "i", "o", "oa", "ou", "u"]
CODAS = ["", "", "", "l", "m", "n", "nd", "r", "s", "st"]  # codespell:ignore nd
LEXICON = 40_000
QUESTIONS = 5  # of a user with a profile
LONGEST = 5_000  # words, below the limit of 8,192 tokens of other strategies


@dataclass(frozen=True)
class Shape:
    """Number of groups and responses, and log-normal lengths in words: (median, sigma of the logarithm).

    The sigmas give the two published scripts about the same ratio of computed to unique tokens as on their own data:
    2.5 and 2.8 for pairs, 3.4 and 4.3 for five, 3.9 and 5.7 for sixteen, 2.4 and 2.6 for profiles.
    """

    title: str
    groups: int
    responses: int
    prompt: tuple[float, float]
    response: tuple[float, float]
    benchmark: str | None = None  # whose rows may replace the made ones
    profile: tuple[float, float] | None = None  # begins the prompts of each user's questions


SHAPES = {
    "pairs": Shape("pairs", 16, 2, (160, 0.75), (120, 0.6), "judgebench"),
    "five": Shape("5 responses a prompt", 8, 5, (150, 0.8), (88, 0.7)),
    "best-of-16": Shape("best-of-16", 8, 16, (80, 0.75), (40, 0.75)),
    "profile": Shape("long profile, 2 responses", 8, 2, (600, 0.4), (120, 0.6)),
    "best-of-4": Shape("best-of-4 (RewardBench 2)", 16, 4, (50, 1.0), (100, 0.7), "reward-bench-2"),
    "3x3": Shape("3 x 3 responses (RM-Bench)", 8, 6, (13, 1.0), (150, 1.0), "rm-bench"),
    "best-of-32": Shape("best-of-32 (PPE correctness)", 2, 32, (160, 0.5), (100, 0.5)),
    "users": Shape("5 questions with one profile", 20, 2, (40, 0.75), (100, 0.6), profile=(600, 0.4)),
    "earlier-pairs": Shape(
        "5 questions with 5 to 15 earlier pairs", 10, 2, (40, 0.75), (100, 0.6), profile=(2_300, 0.4)
    ),
}


class Writer:
    """Text of invented words with skewed frequencies."""

    def __init__(self, seed: int) -> None:
        draw = rng_for(seed, "words")
        self.words = sorted({"".join(_syllables(draw)) for _ in range(LEXICON)}, key=lambda word: (len(word), word))
        self.frequencies = list(_running_sum(1 / (rank + 10) for rank in range(len(self.words))))

    def text(self, words: int, draw: Random) -> str:
        """Return sentences with a number of words, in paragraphs."""
        remaining, sentences = words, []
        while remaining > 0:
            length = min(remaining, draw.randint(4, 20))
            remaining -= length
            sentence = " ".join(draw.choices(self.words, cum_weights=self.frequencies, k=length))
            end = ".\n\n" if draw.random() < 0.1 else ". "
            sentences.append(sentence.capitalize() + end)
        return "".join(sentences).strip()


def groups(shape: Shape, *, size: float, writer: Writer, seed: int) -> list[Conversations]:
    """Generate the conversations of a workload, `size` times the usual number, in random order of length."""
    count = max(1, round(shape.groups * size))
    prompts = _lengths(count, shape.prompt, rng_for(seed, shape.title, "prompts"))
    responses = iter(_lengths(count * shape.responses, shape.response, rng_for(seed, shape.title, "responses")))
    users = math.ceil(count / QUESTIONS)
    lengths = _lengths(users, shape.profile, rng_for(seed, shape.title, "profiles")) if shape.profile else []
    profiles = [writer.text(words, rng_for(seed, shape.title, "profile", user)) for user, words in enumerate(lengths)]
    made = []
    for number, prompt in enumerate(prompts):
        draw = rng_for(seed, shape.title, number)
        answers = [writer.text(next(responses), draw) for _ in range(shape.responses)]
        blocks = [*profiles[number // QUESTIONS : number // QUESTIONS + 1], writer.text(prompt, draw)]
        made.append(Conversations("\n\n".join(blocks), answers))
    return made


def shared_and_rests(group: Sequence[Sequence[int]]) -> tuple[int, list[int]]:
    """Count the tokens that all conversations of a group share at the start, and the rest of each."""
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*group, strict=False)))
    return shared, [len(conversation) - shared for conversation in group]


def _lengths(count: int, shape: tuple[float, float], draw: Random) -> list[int]:
    """Shuffled, evenly spaced quantiles of a log-normal distribution, with the same skew for any count."""
    median, sigma = shape
    normal = NormalDist()
    lengths = [median * math.exp(sigma * normal.inv_cdf((index + 0.5) / count)) for index in range(count)]
    draw.shuffle(lengths)
    return [min(LONGEST, max(1, round(length))) for length in lengths]


def _syllables(draw: Random) -> Iterator[str]:
    for _ in range(draw.choice([1, 2, 2, 3, 3, 4])):
        yield draw.choice(ONSETS) + draw.choice(NUCLEI) + draw.choice(CODAS)


def _running_sum(values: Iterator[float]) -> Iterator[float]:
    total = 0.0
    for value in values:
        total += value
        yield total
