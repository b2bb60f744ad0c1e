"""Generate prompts with responses and judgments in the shape and size of CheemsPreference's larger part."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from resolving.protocol import FACTS, GRAPHS, RANKINGS, Made

# CHEEMS, table 1, Pref-GPT: prompts, responses a prompt, comparisons, characters of a prompt and of a response.
PROMPTS, RESPONSES, COMPARISONS, PROMPT, RESPONSE = 27_861, 5.29, 332_370, 176, 450
SPREAD = 0.6  # of the logarithm of lengths
NOISE = 0.9  # of a judgment, so that about a quarter are in conflict, as in table 5
EQUAL = 0.05  # margin below which a judgment is a tie
SIGNS = np.frombuffer("，。、：；".encode("utf-32-le"), np.uint32)


def make(folder: Path, prompts: int, seed: int) -> Made:
    """Write the prompts, and a second file with only their judgments."""
    draw, texts = Random(seed), _Texts(seed)
    comparisons = round(COMPARISONS * prompts / PROMPTS)
    sizes = [6 if draw.random() < RESPONSES - 5 else 5 for _ in range(prompts)]
    repeated = max(0, comparisons - sum(size * (size - 1) // 2 for size in sizes))
    twice = set(draw.sample(range(prompts), repeated)) if repeated <= prompts else set(range(prompts))
    graphs, characters = [], 0
    with (folder / RANKINGS).open("w", encoding="utf-8", newline="\n") as file:
        for number, size in enumerate(sizes):
            row = _row(number, size, draw, texts, again=number in twice)
            characters += sum(len(response["content"]) for response in row["responses"])
            graphs.append(row["annotations"])
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    (folder / GRAPHS).write_text(json.dumps(graphs), "utf-8")
    marks = [mark for graph in graphs for *_, mark in graph]
    size = (folder / RANKINGS).stat().st_size
    made = Made(prompts, seed, sum(sizes), len(marks), marks.count("s"), characters, size)
    made.write(folder / FACTS)
    return made


def _row(number: int, size: int, draw: Random, texts: "_Texts", *, again: bool) -> dict[str, Any]:
    contents = [texts.take(RESPONSE, draw) for _ in range(size)]
    names = [blake2b(content.encode(), digest_size=16).hexdigest() for content in contents]
    # Longer responses are slightly preferred.
    quality = {name: draw.gauss(0.3 * len(text) / RESPONSE, 1) for name, text in zip(names, contents, strict=True)}
    pairs = list(combinations(names, 2))
    if again:
        pairs.append(draw.choice(pairs))
    annotations = []
    for pair in pairs:
        first, second = draw.sample(pair, 2)
        difference = quality[first] - quality[second] + draw.gauss(0, NOISE)
        annotations.append((first, second, "s" if abs(difference) < EQUAL else "1" if difference > 0 else "2"))
    return {
        "id": f"prompt-{number}",
        "input": f"{number}：{texts.take(PROMPT, draw)}",
        "responses": [
            {"id": name, "content": text, "model": f"model-{place}"}
            for place, (name, text) in enumerate(zip(names, contents, strict=True))
        ],
        "annotations": annotations,
        "category": [f"类别{number % 8}", f"子类{number % 24}"],
    }


class _Texts:
    """Endless text of 3,000 distinct characters with punctuation and a few emojis."""

    def __init__(self, seed: int) -> None:
        self._parts = self._endless(np.random.default_rng(seed))
        self._left = ""

    def take(self, mean: float, draw: Random) -> str:
        """Return the next text, with a log-normal length of this mean."""
        length = max(1, round(draw.lognormvariate(np.log(mean) - SPREAD**2 / 2, SPREAD)))
        while len(self._left) < length:
            self._left += next(self._parts)
        text, self._left = self._left[:length], self._left[length:]
        return text

    @staticmethod
    def _endless(rng: np.random.Generator) -> Iterator[str]:
        while True:
            part = rng.integers(0x4E00, 0x4E00 + 3_000, 20_000, np.uint32)
            part[::13] = rng.choice(SIGNS, len(part[::13]))
            part[rng.integers(0, len(part), 2)] = ord("😀")
            yield part.tobytes().decode("utf-32-le")
