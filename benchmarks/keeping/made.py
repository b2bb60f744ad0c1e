"""Generate benchmarks of any size in the formats that the evaluator reads, from our own sentences.

`python -m keeping.made SETTINGS` writes a folder for each benchmark (see `protocol.Settings`).
"""

import json
import math
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
from pluralbench_release.content import write_parquet
from pluralbench_runs import rng_for
from translating.english import SENTENCES, SUBSETS

from keeping.protocol import FACTS, Made, Settings

LANGUAGES = tomllib.loads((Path(__file__).parents[1] / "translating" / "sentences.toml").read_text("utf-8"))
# Characters, the median: prompt, response, post; about as in RewardBench, in which a pair has 1.6 kB.
PROMPT, RESPONSE, POST, SPREAD = 300, 600, 400, 0.6
POSTS, RESPONSES = 4, 5
DOMAINS = ("Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture")
Tables = Iterator[tuple[str, list[dict[str, Any]]]]


class Texts:
    """Distinct texts of one language."""

    def __init__(self, sentences: list[str], draw: Random) -> None:
        self._sentences, self._draw, self._taken = sentences, draw, 0

    def take(self, median: int) -> str:
        """Return a text with a log-normal number of characters."""
        self._taken += 1
        remaining = math.exp(self._draw.gauss(math.log(median), SPREAD))
        parts = [f"{self._taken}."]
        while remaining > 0:
            parts.append(self._draw.choice(self._sentences))
            remaining -= len(parts[-1])
        return " ".join(parts)


def multilingual(items: int, seed: int) -> Tables:
    """Generate a release of pairs in English and 23 languages, with about `items` items in total."""
    rows = round(items / (len(LANGUAGES) + 1))
    for language, sentences in {"eng_Latn": SENTENCES, **LANGUAGES}.items():
        texts = Texts(sentences, rng_for(seed, "multilingual", language))
        yield language, [_translated(number, language, _subset(number / rows), texts) for number in range(rows)]


def _translated(number: int, language: str, subset: str, texts: Texts) -> dict[str, Any]:
    call = f"{number:064x}"
    return {
        "id": number,
        "language": language,
        "prompt": texts.take(PROMPT),
        "chosen": texts.take(RESPONSE),
        "rejected": texts.take(RESPONSE),
        "chosen_model": "made",
        "rejected_model": "made",
        "source": subset,
        "category": "made",
        "translator": "none",
        "prompt_calls": [call],
        "chosen_calls": [call],
        "rejected_calls": [call],
    }


def _subset(share: float) -> str:
    """The subset at a position from 0 to 1 among all rows, in RewardBench's proportions."""
    ends = accumulate(SUBSETS.values())
    return next(name for name, end in zip(SUBSETS, ends, strict=True) if share * sum(SUBSETS.values()) < end)


def personalized(items: int, seed: int) -> Tables:
    """Generate pairs with past posts and rubric aspects."""
    for domain in DOMAINS:
        texts = Texts(SENTENCES, rng_for(seed, "personalized", domain))
        yield domain, [_personal(f"{domain}-{number}", texts) for number in range(round(items / len(DOMAINS)))]


def _personal(name: str, texts: Texts) -> dict[str, Any]:
    return {
        "id": name,
        "question": texts.take(PROMPT),
        "category": "made",
        "narrative": texts.take(POST),
        "rubric_aspects": [
            {"aspect": texts.take(20), "evidence": texts.take(80), "reason": texts.take(80)} for _ in range(POSTS)
        ],
        "profile": [{"id": f"{name}-{n}", "category": "made", "text": texts.take(POST)} for n in range(POSTS)],
        "chosen": texts.take(RESPONSE),
        "rejected": texts.take(RESPONSE),
    }


def pairs(items: int, seed: int) -> Tables:
    """Generate user-provided pairs, in which each 20th prompt occurs twice."""
    texts = Texts(SENTENCES, rng_for(seed, "pairs"))
    rows = [
        {"id": f"pair-{number}", **{name: texts.take(size) for name, size in (("prompt", PROMPT), *BOTH)}}
        for number in range(items)
    ]
    for number in range(20, items, 20):
        rows[number]["prompt"] = rows[number - 1]["prompt"]
    yield "pairs", rows


BOTH = (("chosen", RESPONSE), ("rejected", RESPONSE))


def chinese(items: int, seed: int) -> Tables:
    """Generate rankings by category, with `items` responses in total."""
    texts = Texts(LANGUAGES["zho_Hans"], rng_for(seed, "chinese"))
    draw = rng_for(seed, "ranks")
    for config in ("human", "open"):
        yield config, [_ranking(f"{config}-{number}", texts, draw) for number in range(items // RESPONSES // 2)]


def _ranking(name: str, texts: Texts, draw: Random) -> dict[str, Any]:
    responses = [{"id": f"{name}-{n}", "content": texts.take(RESPONSE // 2), "model": "made"} for n in range(RESPONSES)]
    return {
        "id": name,
        "input": texts.take(PROMPT // 2),
        "sys_prompt": None,
        "responses": responses,
        "rank": [{"id": response["id"], "rank": draw.randint(1, RESPONSES)} for response in responses],
        "category": [f"类别{draw.randrange(8)}"],
    }


MAKERS: dict[str, Callable[[int, int], Tables]] = {
    "multilingual": multilingual,
    "personalized": personalized,
    "pairs": pairs,
    "chinese": chinese,
}


def _write(folder: Path, tables: Tables) -> Made:
    """Write the tables as Parquet in the layout of a release, or the pairs as JSON Lines."""
    rows = responses = characters = 0
    for config, table in tables:
        rows += len(table)
        for row in table:
            answers = row.get("responses") or [{"content": row["chosen"]}, {"content": row["rejected"]}]
            prompt = row.get("prompt") or row.get("question") or row["input"]
            responses += len(answers)
            characters += len(prompt) + sum(len(answer["content"]) for answer in answers)
        if config == "pairs":
            folder.mkdir(parents=True)
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table)
            (folder / f"{config}.jsonl").write_text(text, "utf-8")
        else:
            write_parquet(pl.DataFrame(table, infer_schema_length=None), folder / "data" / config / "test.parquet")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Made(rows, responses, characters, size, str(table[len(table) // 2]["id"]))


def make(settings: Settings) -> None:
    """Write the benchmarks and their descriptions."""
    folder = Path(settings.folder)
    made = {
        name: asdict(_write(folder / name, MAKERS[name](settings.items, settings.seed))) for name in settings.benchmarks
    }
    (folder / FACTS).write_text(json.dumps({"settings": asdict(settings), "made": made}), "utf-8")


if __name__ == "__main__":
    make(Settings(**json.loads(sys.argv[1])))
