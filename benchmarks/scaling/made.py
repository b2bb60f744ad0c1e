"""Generate any number of pairs, releases and answers from our own sentences."""

from collections.abc import Iterator
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import numpy as np
import polars as pl
from keeping.made import LANGUAGES
from pluralbench_calls import Answer
from pluralbench_release.content import write_parquet
from translating.english import SENTENCES, SUBSETS

PAIRS, LANGUAGE_FOLDER = "pairs.parquet", "languages"
PARTS = (0.2, 0.4, 0.4)  # of a pair's characters: prompt, chosen, rejected
ANSWER = 600  # characters, about
SOURCE = 300_000  # words of the text that the others are cut out of
AT_ONCE = 10_000  # answers
CALL = sha256(b"0").hexdigest()  # the first of `keys`


class Texts:
    """Texts that are cut out of one long random text, so that they compress like random words."""

    def __init__(self, seed: int, *names: int) -> None:
        self._draw = np.random.default_rng([seed, *names])
        words = sorted({word for sentence in SENTENCES for word in sentence.split()})
        self._source = " ".join(self._draw.choice(words, SOURCE))

    def take(self, rows: int, characters: float) -> list[str]:
        """Return a number of texts with 60 to 140 % of the characters, each starting with its number."""
        lengths = (characters * self._draw.uniform(0.6, 1.4, rows)).astype(int)
        starts = self._draw.integers(0, len(self._source) - int(1.4 * characters) - 1, rows)
        cut = (self._source[start : start + length].strip() for start, length in zip(starts, lengths, strict=True))
        return [f"{number} {text}" for number, text in enumerate(cut)]


def pairs(rows: int, characters: int, language: str, seed: int) -> pl.DataFrame:
    """Generate rows of `MULTILINGUAL_PAIRS` with distinct texts."""
    texts = Texts(seed, *language.encode())
    prompt, chosen, rejected = (texts.take(rows, characters * share) for share in PARTS)
    ends = np.array([*accumulate(SUBSETS.values())]) / sum(SUBSETS.values())
    subsets = pl.Series([*SUBSETS])[np.minimum(np.searchsorted(ends, np.arange(rows) / rows, "right"), len(ends) - 1)]
    made = {"id": range(rows), "prompt": prompt, "chosen": chosen, "rejected": rejected, "source": subsets}
    return pl.DataFrame(made).select(
        "id",
        pl.lit(language).alias("language"),
        "prompt",
        pl.concat_str("chosen", pl.lit(" Yes.")),
        pl.concat_str("rejected", pl.lit(" No.")),
        pl.lit("made").alias("chosen_model"),
        pl.lit("made").alias("rejected_model"),
        "source",
        pl.lit("made").alias("category"),
        pl.lit("none").alias("translator"),
        *(pl.lit(pl.Series([[CALL]])).first().alias(f"{name}_calls") for name in ("prompt", "chosen", "rejected")),
    )


def make(folder: Path, rows: int, characters: int, seed: int) -> None:
    """Write pairs as one table, and about as many in 24 languages."""
    write_parquet(pairs(rows, characters, "eng_Latn", seed), folder / PAIRS)
    names = ["eng_Latn", *LANGUAGES]
    for name in names:
        table = pairs(max(1, round(rows / len(names))), characters, name, seed)
        write_parquet(table, folder / LANGUAGE_FOLDER / "data" / name / "test.parquet")


def keys(many: int) -> Iterator[str]:
    """Return the keys of generated calls."""
    return (sha256(str(number).encode()).hexdigest() for number in range(many))


def answers(many: int) -> Iterator[Answer]:
    """Generate distinct answers to these calls."""
    texts = Texts(many)
    for start in range(0, many, AT_ONCE):
        some = range(start, min(many, start + AT_ONCE))
        for number, text in zip(some, texts.take(len(some), ANSWER), strict=True):
            yield Answer(
                key=sha256(str(number).encode()).hexdigest(),
                kind="chat",
                provider="made",
                label=f"answer {number}",
                outcome="answer",
                text=text,
                model="made",
                finish_reason="stop",
                prompt_tokens=number % 1000,
                completion_tokens=150,
                recorded_at="2026-01-01T00:00:00.000+00:00",
            )
