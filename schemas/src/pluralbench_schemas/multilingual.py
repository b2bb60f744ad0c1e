"""Tables of M-RewardBench: pairs in one language, and pairs of better and worse translations.

Column names and types are the published ones (`CohereLabsCommunity/multilingual-reward-bench`). Further columns have
the provenance of the rows.
"""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.languages import LANGUAGES
from pluralbench_schemas.rules import Rows, are_call_keys, differs, non_blank, not_negative, rule, same_in_all

SUBSET = "^translation-[a-z]{2,3}-[a-z]{2,3}-(easy|hard)$"


class MultilingualPairs(Rows):
    """Pairs in one language.

    Attributes:
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

    Attributes:
        id: Unique id.
        prompt: The request to translate, which contains the sentence.
        chosen: The better translation.
        rejected: The worse translation.
        source: The sentence (not the subset, as in `MultilingualPairs`).
        subset: `translation-SRC-TGT-LEVEL`.
        template: Number of the prompt template.
        chosen_system: Translation system of `chosen`.
        rejected_system: Translation system of `rejected`.
        chosen_score: Human rating of `chosen`. The scale determines whether higher is better.
        rejected_score: Human rating of `rejected`.
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
        "must contain the sentence in `source`",
        "prompt",
        holds=lambda name: pl.col(name).str.contains(pl.col("source"), literal=True),
    )
