"""Translate rows language by language; check each text, and translate failed texts once more in smaller pieces."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
from pluralbench_calls import Backend, Ledger, Limits, Request, ask
from pluralbench_runs.workers import ParallelMap
from pluralbench_schemas import ENGLISH, MULTILINGUAL_PAIRS, Language

from build_multilingual.masking import MaskedText, mask
from build_multilingual.pieces import Piece, Strategy, split_pieces
from build_multilingual.recipe import ChecksTable
from build_multilingual.source import TEXTS, matches
from build_multilingual.translators import Translator
from build_multilingual.valid_translations import TranslatedTexts, check_translations

STRATEGIES: tuple[Strategy, ...] = ("whole", "cut")
ROWS = MULTILINGUAL_PAIRS.columns
IDENTICAL = "identical answers"
SET_ASIDE = pl.Schema(
    {"id": pl.Int64, "language": pl.String, "field": pl.String, "reason": pl.String, "translation": pl.String}
)


@dataclass
class Text:
    """Text that is being translated, with its latest translation and the calls and models behind it.

    `label`: of its calls. `reason`: problem of the translation, "" if it passed the checks.
    """

    label: str
    masked: MaskedText
    translation: str = ""
    reason: str = ""
    calls: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)


Texts = dict[tuple[int, str], Text]
"""Texts by the number of their row and their column."""


@dataclass(frozen=True)
class TranslationContext:
    """Translator by which answers are recorded, the backend that answers (it, or a replay), ledger and limits."""

    identity: Translator
    backend: Backend
    ledger: Ledger
    limits: Limits
    checks: ChecksTable


def mask_all(pairs: pl.DataFrame) -> dict[str, MaskedText]:
    """Mask every text of the source, once for all languages."""
    return {text: mask(text) for name in TEXTS for text in pairs[name].unique()}


def translate(
    pairs: pl.DataFrame,
    languages: Iterable[Language],
    masked: Mapping[str, MaskedText],
    context: TranslationContext,
    prompt_only: Sequence[str],
    each: ParallelMap = map,
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Translate all rows into each language.

    While `each` (`map`, or that of worker processes) checks one language, the next one is translated.

    Yields:
        For each language all rows (columns of `MULTILINGUAL_PAIRS`), including failed translations, and the texts that
        failed (columns of `SET_ASIDE`).
    """
    rows = list(pairs.iter_rows(named=True))
    pending = deque[tuple[Language, Texts]]()

    def translated() -> Iterator[TranslatedTexts]:
        for language in languages:
            texts = _texts(rows, language, masked, prompt_only)
            pending.append((language, texts))
            yield _request_texts(texts, language, context, "whole")

    for checked in each(check_translations, translated()):
        language, texts = pending.popleft()
        _update(texts, checked)
        failed = _failed(rows, texts)
        _update(failed, check_translations(_request_texts(failed, language, context, "cut")))
        yield _frame(rows, texts, language), _set_aside(rows, _failed(rows, texts), language)


def _texts(
    rows: Sequence[Mapping[str, str]], language: Language, masked: Mapping[str, MaskedText], prompt_only: Sequence[str]
) -> Texts:
    return {
        (number, name): Text(f"the {name} of {row['id']} in {language.code}", masked[row[name]])
        for number, row in enumerate(rows)
        for name in TEXTS
        if name == "prompt" or not matches(row["subset"], prompt_only)
    }


def _request_texts(
    texts: Texts, language: Language, context: TranslationContext, strategy: Strategy
) -> TranslatedTexts:
    """Request translations with one strategy; enter the calls and models into the texts."""
    texts_pieces = [split_pieces(text.masked, strategy, context.identity.longest) for text in texts.values()]
    sample = STRATEGIES.index(strategy)
    requests = [
        [_request(piece, language, context.identity, sample, text.label) for piece in pieces if piece.translate]
        for text, pieces in zip(texts.values(), texts_pieces, strict=True)
    ]
    flat = [request for group in requests for request in group]
    answers = iter(ask(flat, context.ledger, context.backend, limits=context.limits, label=f"texts in {language.code}"))
    results = []
    for text, pieces, group in zip(texts.values(), texts_pieces, requests, strict=True):
        own = [next(answers) for _ in group]
        text.calls = [answer.key for answer in own]
        text.models = list(dict.fromkeys(answer.model for answer in own))
        results.append((text.masked, pieces, [(answer.outcome, answer.text) for answer in own]))
    return TranslatedTexts(language, context.checks, strategy, results)


def _request(piece: Piece, language: Language, identity: Translator, sample: int, label: str) -> Request:
    body = identity.body(piece.text, language)
    return Request("translation", identity.provider, identity.model, body, sample=sample, label=label)


def _update(texts: Texts, checked: Iterable[tuple[str, str]]) -> None:
    for text, (translation, reason) in zip(texts.values(), checked, strict=True):
        text.translation, text.reason = translation, reason


def _failed(rows: Sequence[Mapping[str, str]], texts: Texts) -> Texts:
    """Return the texts that failed a check. Two answers that became equal fail, even if both are good translations."""
    for number in range(len(rows)):
        sides = [texts[number, name] for name in ("chosen", "rejected") if (number, name) in texts]
        if len({text.translation.strip() for text in sides}) == 1:
            for text in sides:
                text.reason = text.reason or IDENTICAL
    return {key: text for key, text in texts.items() if text.reason}


def _frame(rows: Sequence[Mapping[str, str]], texts: Texts, language: Language) -> pl.DataFrame:
    translated = []
    for number, row in enumerate(rows):
        own = {name: texts.get((number, name)) for name in TEXTS}
        models = list(dict.fromkeys(model for text in own.values() if text for model in text.models))
        translated.append(
            {
                "id": row["id"],
                "language": language.code,
                **{name: text.translation if text else row[name] for name, text in own.items()},
                "chosen_model": row["chosen_model"],
                "rejected_model": row["rejected_model"],
                "source": row["subset"],
                "category": row["category"],
                "translator": "; ".join(models) or "none",
                **{f"{name}_calls": text.calls if text else [] for name, text in own.items()},
            }
        )
    return pl.DataFrame(translated, schema=ROWS)


def _set_aside(rows: Sequence[Mapping[str, str]], texts: Texts, language: Language) -> pl.DataFrame:
    failed = [
        (rows[number]["id"], language.code, name, text.reason, text.translation)
        for (number, name), text in texts.items()
    ]
    return pl.DataFrame(failed, schema=SET_ASIDE, orient="row")


def english_rows(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the English source with the columns of `MULTILINGUAL_PAIRS`."""
    calls = {f"{name}_calls": pl.lit([], dtype=pl.List(pl.String)) for name in TEXTS}
    columns = {"language": pl.lit(ENGLISH), "source": pl.col("subset"), "translator": pl.lit("none")}
    return pairs.with_columns(**columns, **calls).select(*ROWS)
