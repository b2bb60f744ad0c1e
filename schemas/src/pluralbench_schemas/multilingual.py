"""Tables of M-RewardBench: pairs in one language each, and pairs of better and worse translations.

Column names and types are the published ones (`CohereLabsCommunity/multilingual-reward-bench`); the rows carry their
provenance in further columns.
"""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.call_keys import are_call_keys
from pluralbench_schemas.languages import LANGUAGES

SUBSET = "^translation-[a-z]{2,3}-[a-z]{2,3}-(easy|hard)$"


def _filled(data: pa.PolarsData) -> pl.LazyFrame:
    return data.lazyframe.select(pl.col(data.key).str.contains(r"\S"))


def _counted(data: pa.PolarsData) -> pl.LazyFrame:
    return data.lazyframe.select(pl.col(data.key) >= 0)


class MultilingualPairs(pa.DataFrameModel):
    """Pairs in one language. `id` is that of the English source and shared across languages.

    source: the subset of the source. translator: the model that translated, as it named itself, or "none".
    prompt_calls, chosen_calls, rejected_calls: keys of the recorded calls behind each text, none where it is as in the
    source (code) or was put in by a person.
    """

    id: int = pa.Field(unique=True)
    language: str
    prompt: str
    chosen: str
    rejected: str
    chosen_model: str
    rejected_model: str
    source: str
    category: str
    translator: str
    prompt_calls: pl.List = pa.Field(dtype_kwargs={"inner": pl.String})
    chosen_calls: pl.List = pa.Field(dtype_kwargs={"inner": pl.String})
    rejected_calls: pl.List = pa.Field(dtype_kwargs={"inner": pl.String})

    class Config:
        """No column beside these."""

        strict = True

    @pa.check("prompt", "source", "category", "translator", error="must have text")
    @classmethod
    def _text(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _filled(data)

    @pa.check("id", error="must not be negative")
    @classmethod
    def _not_negative(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _counted(data)

    @pa.check("language", error="must be a language of `languages.toml`")
    @classmethod
    def _known(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).is_in(list(LANGUAGES)))

    @pa.check("language", error="must be the same in all rows")
    @classmethod
    def _one_language(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) == pl.col(data.key).first())

    @pa.check("prompt_calls", "chosen_calls", "rejected_calls", error="must be keys of calls, 64 hexadecimal digits")
    @classmethod
    def _call_keys(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(are_call_keys(data.key))

    @pa.check("rejected", error="must differ from `chosen`")
    @classmethod
    def _differ(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("chosen") != pl.col("rejected"))


class TranslationPairs(pa.DataFrameModel):
    """A better and a worse translation of one sentence.

    source: the sentence (not the subset, as in the language configs). subset: `translation-SRC-TGT-LEVEL`.
    template: which prompt template. The systems and scores are those of the rated translations; whether a higher score
    is better is the scale's to say.
    """

    id: int = pa.Field(unique=True)
    prompt: str
    chosen: str
    rejected: str
    source: str
    subset: str
    template: int
    chosen_system: str
    rejected_system: str
    chosen_score: float
    rejected_score: float

    class Config:
        """No column beside these."""

        strict = True

    @pa.check("prompt", "chosen", "rejected", "source", error="must have text")
    @classmethod
    def _text(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _filled(data)

    @pa.check("rejected", error="must differ from `chosen`")
    @classmethod
    def _differ(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("chosen") != pl.col("rejected"))

    @pa.check("id", "template", error="must not be negative")
    @classmethod
    def _not_negative(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _counted(data)

    @pa.check("subset", error="must be of the form translation-SRC-TGT-easy or -hard")
    @classmethod
    def _named(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).str.contains(SUBSET))

    @pa.check("prompt", error="must hold the sentence of `source`")
    @classmethod
    def _holds_source(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("prompt").str.contains(pl.col("source"), literal=True))
