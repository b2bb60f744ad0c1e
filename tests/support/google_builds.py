"""Builds by Google Cloud Translation from made texts, and what they leave."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w
from pluralbench_calls import read_ledger
from written_tables import write

PROJECT = "the-builders-own"
GO_ON = "; rerun the same command to resume."
Run = Callable[..., tuple[int, str]]
Row = Mapping[str, Any]

VOCABULARY = """
    the a bread garden window river teacher winter music never always small bright quiet letter morning kitchen walks
    reads finds keeps brings under before because through many few old young neighbour station market bicycle ticket
    coffee mountain village children answer question story paper table yellow green carries opens remembers slowly
"""


def prose(name: str, words: int = 20) -> str:
    """English sentences, always the same for a name and others for another."""
    draws = random.Random(name)
    vocabulary, sentences = VOCABULARY.split(), []
    while words > 0:
        count = min(words, draws.randint(8, 14))
        sentences.append(" ".join(draws.choice(vocabulary) for _ in range(count)).capitalize() + ".")
        words -= count
    return " ".join(sentences)


def rows(count: int, words: int = 20, subset: str = "chat") -> list[dict[str, Any]]:
    sides = ("prompt", "chosen", "rejected")
    return [
        {"id": number, **{side: prose(f"{side} {number}", words) for side in sides}, "subset": subset}
        for number in range(count)
    ]


def recipe(folder: Path, endpoint: str, pairs: Sequence[Row], **tables: Any) -> Path:
    """A recipe for Spanish by the server at `endpoint`; a table given here adds to the one that is there."""
    values: dict[str, Any] = {
        "languages": ["spa_Latn"],
        "source": {"location": str(write(folder / "pairs.jsonl", pairs))},
        "translator": {"name": "google"},
        "connection": {"project": PROJECT, "endpoint": endpoint, "retry_seconds": 30.0, "concurrency": 1},
    }
    for name, value in tables.items():
        values[name] = values[name] | value if isinstance(value, dict) and name in values else value
    (folder / "recipe.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
    return folder / "recipe.toml"


def built(run: Run, folder: Path, endpoint: str, pairs: Sequence[Row], *words: object, **tables: Any) -> Path:
    """The release that the command makes of such a recipe."""
    status, said = run("--recipe", recipe(folder, endpoint, pairs, **tables), *words, "--out", folder / "out")
    assert status == 0, said
    return folder / "out"


def released(out: Path, config: str = "spa_Latn") -> pl.DataFrame:
    return pl.read_parquet(out / f"data/{config}/test.parquet")


def record(out: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(out / f"provenance/{name}.parquet")


def calls(out: Path) -> pl.DataFrame:
    return read_ledger(out / "provenance/ledger.parquet")


def texts_of(pairs: Sequence[Row]) -> list[str]:
    return [row[side] for row in pairs for side in ("prompt", "chosen", "rejected")]
