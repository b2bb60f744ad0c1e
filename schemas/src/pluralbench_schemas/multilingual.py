"""Tables of M-RewardBench: pairs in one language each, and pairs of better and worse translations.

Column names and types are the published ones (`CohereLabsCommunity/multilingual-reward-bench`); the rows carry their
provenance in further columns.
"""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.languages import LANGUAGES
from pluralbench_schemas.rules import Rows, are_call_keys, differs, non_blank, not_negative, rule, same_in_all

SUBSET = "^translation-[a-z]{2,3}-[a-z]{2,3}-(easy|hard)$"


class MultilingualPairs(Rows):
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

    _text = non_blank("prompt", "source", "category", "translator")
    _not_negative = not_negative("id")
    _known = rule(
        "must be a language of `languages.toml`", "language", holds=lambda name: pl.col(name).is_in(list(LANGUAGES))
    )
    _one_language = same_in_all("language")
    _call_keys = are_call_keys("prompt_calls", "chosen_calls", "rejected_calls")
    _differ = differs("rejected", "chosen")


class TranslationPairs(Rows):
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

    _text = non_blank("prompt", "chosen", "rejected", "source")
    _differ = differs("rejected", "chosen")
    _not_negative = not_negative("id", "template")
    _named = rule(
        "must be of the form translation-SRC-TGT-easy or -hard",
        "subset",
        holds=lambda name: pl.col(name).str.contains(SUBSET),
    )
    _holds_source = rule(
        "must hold the sentence of `source`",
        "prompt",
        holds=lambda name: pl.col(name).str.contains(pl.col("source"), literal=True),
    )
