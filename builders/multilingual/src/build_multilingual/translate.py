"""Translate rows into one language, check each text, ask again once what fails, and set aside what fails again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
from pluralbench_calls import Answer, Backend, Ledger, Limits, Request, ask
from pluralbench_schemas import ENGLISH, LANGUAGES, Language

from build_multilingual.checks import problem
from build_multilingual.masking import Lost, Masked, mask, without_marks
from build_multilingual.pieces import Piece, Way, joined, pieces
from build_multilingual.recipe import ChecksTable
from build_multilingual.source import TEXTS, matches
from build_multilingual.translators import Translator

WAYS: tuple[Way, ...] = ("whole", "cut")
NO_ANSWER = {
    "error": "refused by the translator",
    "empty": "empty",
    "length": "cut off",
    "refusal": "refused by the translator",
    "content_filter": "refused by the translator",
}
IDENTICAL = "identical answers"
SET_ASIDE = pl.Schema(
    {"id": pl.Int64, "language": pl.String, "field": pl.String, "reason": pl.String, "translation": pl.String}
)


@dataclass
class Text:
    """A text on its way into a language.

    row, name: the number of its row and its column. label: what a call for it is called. masked: of the English text.
    translation: the latest one, which may have failed for `reason`. calls: the keys of the calls behind it. models: who
    made it.
    """

    row: int
    name: str
    label: str
    masked: Masked
    translation: str = ""
    reason: str = ""
    calls: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Asking:
    """Who is asked and where the answers are recorded. identity: whose answers they are, `backend` who gives them."""

    identity: Translator
    backend: Backend
    ledger: Ledger
    limits: Limits
    checks: ChecksTable


def mask_all(pairs: pl.DataFrame) -> dict[str, Masked]:
    """Every text of the source, masked once for all languages."""
    return {text: mask(text) for name in TEXTS for text in pairs[name].unique()}


def translate(
    pairs: pl.DataFrame, language: Language, masked: Mapping[str, Masked], asking: Asking, prompt_only: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All rows in `language`, and what of them failed (columns of `SET_ASIDE`), whose rows hold what there is.

    The rows have the columns of `MultilingualPairs`.
    """
    rows = list(pairs.iter_rows(named=True))
    texts = [
        Text(number, name, f"the {name} of {row['id']} in {language.code}", masked[row[name]])
        for number, row in enumerate(rows)
        for name in TEXTS
        if name == "prompt" or not matches(row["subset"], prompt_only)
    ]
    waiting = texts
    for sample, way in enumerate(WAYS):
        _ask(waiting, language, asking, way, sample)
        _mark_identical(rows, texts)
        waiting = [text for text in texts if text.reason]
    return _frame(rows, texts, language), _set_aside(rows, waiting, language)


def _ask(texts: Sequence[Text], language: Language, asking: Asking, way: Way, sample: int) -> None:
    """Ask for texts in one way and put the outcome into them."""
    plans = [pieces(text.masked, way, asking.identity.longest) for text in texts]
    requests = [
        [_request(piece, language, asking.identity, sample, text.label) for piece in plan if piece.asked]
        for text, plan in zip(texts, plans, strict=True)
    ]
    flat = [request for group in requests for request in group]
    answers = iter(ask(flat, asking.ledger, asking.backend, limits=asking.limits, label=f"texts in {language.code}"))
    for text, plan, group in zip(texts, plans, requests, strict=True):
        _settle(text, plan, [next(answers) for _ in group], language, asking.checks, way)


def _request(piece: Piece, language: Language, identity: Translator, sample: int, label: str) -> Request:
    body = identity.body(piece.text, language)
    return Request("translation", identity.provider, identity.model, body, sample=sample, label=label)


def _settle(
    text: Text, plan: Sequence[Piece], answers: Sequence[Answer], language: Language, checks: ChecksTable, way: Way
) -> None:
    text.calls = [answer.key for answer in answers]
    text.models = list(dict.fromkeys(answer.model for answer in answers))
    failed = next((answer for answer in answers if answer.outcome != "answer"), None)
    text.translation = joined(
        plan, iter([answer.text.strip() if answer.outcome == "answer" else "" for answer in answers])
    )
    if failed is not None:
        text.reason = NO_ANSWER[failed.outcome]
        return
    if way == "whole":
        translated = without_marks(text.translation)
        try:
            text.translation = text.masked.restore(text.translation)
        except Lost as lost:
            text.reason = str(lost)
            return
    else:
        translated = " ".join(answer.text for answer in answers)
    text.reason = problem(text.masked, translated, language, checks)


def _mark_identical(rows: Sequence[Mapping[str, str]], texts: Sequence[Text]) -> None:
    """Answers that became the same text say nothing any more, though each may be a good translation."""
    by_row: dict[int, dict[str, Text]] = {}
    for text in texts:
        by_row.setdefault(text.row, {})[text.name] = text
    for number, fields in by_row.items():
        both = [fields[name].translation if name in fields else rows[number][name] for name in ("chosen", "rejected")]
        if both[0].strip() == both[1].strip():
            for name in ("chosen", "rejected"):
                if name in fields:
                    fields[name].reason = fields[name].reason or IDENTICAL


def _frame(rows: Sequence[Mapping[str, str]], texts: Sequence[Text], language: Language) -> pl.DataFrame:
    by_place = {(text.row, text.name): text for text in texts}
    made = []
    for number, row in enumerate(rows):
        own = {name: by_place.get((number, name)) for name in TEXTS}
        models = list(dict.fromkeys(model for text in own.values() if text for model in text.models))
        made.append(
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
    return pl.DataFrame(made, schema=ROWS)


def _set_aside(rows: Sequence[Mapping[str, str]], texts: Sequence[Text], language: Language) -> pl.DataFrame:
    failed = [(rows[text.row]["id"], language.code, text.name, text.reason, text.translation) for text in texts]
    return pl.DataFrame(failed, schema=SET_ASIDE, orient="row")


_KEYS: dict[str, pl.DataType | type[pl.DataType]] = {f"{name}_calls": pl.List(pl.String) for name in TEXTS}
ROWS = pl.Schema(
    [
        ("id", pl.Int64),
        *(
            (name, pl.String)
            for name in (
                "language",
                *TEXTS,
                "chosen_model",
                "rejected_model",
                "source",
                "category",
                "translator",
            )
        ),
        *_KEYS.items(),
    ]
)


def english_rows(pairs: pl.DataFrame) -> pl.DataFrame:
    """The source itself, with the columns of `MultilingualPairs`."""
    return (
        pairs.rename({"subset": "source"})
        .with_columns(
            pl.lit(LANGUAGES[ENGLISH].code).alias("language"),
            pl.lit("none").alias("translator"),
            *(pl.lit([], dtype=pl.List(pl.String)).alias(name) for name in _KEYS),
        )
        .select(pl.col(name).cast(kind) for name, kind in ROWS.items())
    )
