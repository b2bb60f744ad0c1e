"""Tables of M-RewardBench: pairs in one language, and pairs of better and worse translations.

Column names and types are the published ones (`CohereLabsCommunity/multilingual-reward-bench`). Further columns have
the provenance of the rows.
"""

import polars as pl

from pluralbench_schemas.languages import LANGUAGES
from pluralbench_schemas.rules import Schema, are_call_keys, differs, non_blank, not_negative, rule, same_in_all

SUBSET = "^translation-[a-z]{2,3}-[a-z]{2,3}-(easy|hard)$"


MULTILINGUAL_PAIRS = Schema(
    columns={
        "id": pl.Int64,
        "language": pl.String,
        "prompt": pl.String,
        "chosen": pl.String,
        "rejected": pl.String,
        "chosen_model": pl.String,
        "rejected_model": pl.String,
        "source": pl.String,
        "category": pl.String,
        "translator": pl.String,
        "prompt_calls": pl.List(pl.String),
        "chosen_calls": pl.List(pl.String),
        "rejected_calls": pl.List(pl.String),
    },
    rules=[
        non_blank("prompt", "source", "category", "translator"),
        not_negative("id"),
        rule(
            "must be a language of `languages.toml`", "language", holds=lambda name: pl.col(name).is_in(list(LANGUAGES))
        ),
        same_in_all("language"),
        are_call_keys("prompt_calls", "chosen_calls", "rejected_calls"),
        differs("rejected", "chosen"),
    ],
)
"""Pairs in one language.

Columns:
    id: Id of the English source, shared by all languages.
    language: FLORES-200 code.
    prompt: The prompt.
    chosen: The better response.
    rejected: The worse response.
    chosen_model: Model of the better response.
    rejected_model: Model of the worse response.
    source: Subset of the source.
    category: Category of the subset.
    translator: Name of the translation model, or "none".
    prompt_calls: Keys of the recorded translations of the prompt. Empty if the text is unchanged (code) or was
        edited by a person.
    chosen_calls: The same for `chosen`.
    rejected_calls: The same for `rejected`.
"""


TRANSLATION_PAIRS = Schema(
    columns={
        "id": pl.Int64,
        "prompt": pl.String,
        "chosen": pl.String,
        "rejected": pl.String,
        "source": pl.String,
        "subset": pl.String,
        "template": pl.Int64,
        "chosen_system": pl.String,
        "rejected_system": pl.String,
        "chosen_score": pl.Float64,
        "rejected_score": pl.Float64,
    },
    rules=[
        non_blank("prompt", "chosen", "rejected", "source"),
        differs("rejected", "chosen"),
        not_negative("id", "template"),
        rule(
            "must be of the form translation-SRC-TGT-easy or -hard",
            "subset",
            holds=lambda name: pl.col(name).str.contains(SUBSET),
        ),
        rule(
            "must contain the sentence in `source`",
            "prompt",
            holds=lambda name: pl.col(name).str.contains(pl.col("source"), literal=True),
        ),
    ],
)
"""A better and a worse translation of one sentence.

Columns:
    id: Unique id.
    prompt: The request to translate, which contains the sentence.
    chosen: The better translation.
    rejected: The worse translation.
    source: The sentence (not the subset, as in `MULTILINGUAL_PAIRS`).
    subset: `translation-SRC-TGT-LEVEL`.
    template: Number of the prompt template.
    chosen_system: Translation system of `chosen`.
    rejected_system: Translation system of `rejected`.
    chosen_score: Human rating of `chosen`. The scale determines whether higher is better.
    rejected_score: Human rating of `rejected`.
"""
