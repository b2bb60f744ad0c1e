"""Translate rows into one language, check each text, ask again once what fails, and set aside what fails again."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
from pluralbench_calls import Backend, Ledger, Limits, Request, ask
from pluralbench_runs.workers import ParallelMap
from pluralbench_schemas import ENGLISH, Language, MultilingualPairs

from build_multilingual.masking import Masked, mask
from build_multilingual.pieces import Piece, Way, pieces
from build_multilingual.recipe import ChecksTable
from build_multilingual.source import TEXTS, matches
from build_multilingual.translators import Translator
from build_multilingual.valid_translations import TranslatedText, settle

WAYS: tuple[Way, ...] = ("whole", "cut")
ROWS = MultilingualPairs.row_types()
IDENTICAL = "identical answers"
SET_ASIDE = pl.Schema(
    {"id": pl.Int64, "language": pl.String, "field": pl.String, "reason": pl.String, "translation": pl.String}
)


@dataclass
class Text:
    """A text on its way into a language.

    label: what a call for it is called. masked: of the English text. translation: the latest one, which may have
    failed for `reason`. calls: the keys of the calls behind it. models: who made it.
    """

    label: str
    masked: Masked
    translation: str = ""
    reason: str = ""
    calls: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)


Texts = dict[tuple[int, str], Text]
"""By the number of their row and their column."""


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
    pairs: pl.DataFrame,
    languages: Iterable[Language],
    masked: Mapping[str, Masked],
    asking: Asking,
    prompt_only: Sequence[str],
    each: ParallelMap = map,
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """All rows in each language, and what of them failed (columns of `SET_ASIDE`), whose rows hold what there is.

    The rows have the columns of `MultilingualPairs`. each: what checks the translations, `map` or `workers`; while they
    check a language, the next ones are asked for.
    """
    rows = list(pairs.iter_rows(named=True))
    under_way = deque[tuple[Language, Texts]]()

    def answered() -> Iterator[TranslatedText]:
        for language in languages:
            texts = _texts(rows, language, masked, prompt_only)
            under_way.append((language, texts))
            yield _ask(texts, language, asking, "whole")

    for settled in each(settle, answered()):
        language, texts = under_way.popleft()
        _put(texts, settled)
        failed = _failed(rows, texts)
        _put(failed, settle(_ask(failed, language, asking, "cut")))
        yield _frame(rows, texts, language), _set_aside(rows, _failed(rows, texts), language)


def _texts(
    rows: Sequence[Mapping[str, str]], language: Language, masked: Mapping[str, Masked], prompt_only: Sequence[str]
) -> Texts:
    return {
        (number, name): Text(f"the {name} of {row['id']} in {language.code}", masked[row[name]])
        for number, row in enumerate(rows)
        for name in TEXTS
        if name == "prompt" or not matches(row["subset"], prompt_only)
    }


def _ask(texts: Texts, language: Language, asking: Asking, way: Way) -> TranslatedText:
    """Ask for texts in one way; whose answers they are is put into them."""
    plans = [pieces(text.masked, way, asking.identity.longest) for text in texts.values()]
    requests = [
        [_request(piece, language, asking.identity, WAYS.index(way), text.label) for piece in plan if piece.asked]
        for text, plan in zip(texts.values(), plans, strict=True)
    ]
    flat = [request for group in requests for request in group]
    answers = iter(ask(flat, asking.ledger, asking.backend, limits=asking.limits, label=f"texts in {language.code}"))
    came = []
    for text, plan, group in zip(texts.values(), plans, requests, strict=True):
        own = [next(answers) for _ in group]
        text.calls = [answer.key for answer in own]
        text.models = list(dict.fromkeys(answer.model for answer in own))
        came.append((text.masked, plan, [(answer.outcome, answer.text) for answer in own]))
    return TranslatedText(language, asking.checks, way, came)


def _request(piece: Piece, language: Language, identity: Translator, sample: int, label: str) -> Request:
    body = identity.body(piece.text, language)
    return Request("translation", identity.provider, identity.model, body, sample=sample, label=label)


def _put(texts: Texts, settled: Iterable[tuple[str, str]]) -> None:
    for text, (translation, reason) in zip(texts.values(), settled, strict=True):
        text.translation, text.reason = translation, reason


def _failed(rows: Sequence[Mapping[str, str]], texts: Texts) -> Texts:
    """What failed a check. Answers that became the same text did, too, though each may be a good translation."""
    for number in range(len(rows)):
        sides = [texts[number, name] for name in ("chosen", "rejected") if (number, name) in texts]
        if len({text.translation.strip() for text in sides}) == 1:
            for text in sides:
                text.reason = text.reason or IDENTICAL
    return {place: text for place, text in texts.items() if text.reason}


def _frame(rows: Sequence[Mapping[str, str]], texts: Texts, language: Language) -> pl.DataFrame:
    made = []
    for number, row in enumerate(rows):
        own = {name: texts.get((number, name)) for name in TEXTS}
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


def _set_aside(rows: Sequence[Mapping[str, str]], texts: Texts, language: Language) -> pl.DataFrame:
    failed = [
        (rows[number]["id"], language.code, name, text.reason, text.translation)
        for (number, name), text in texts.items()
    ]
    return pl.DataFrame(failed, schema=SET_ASIDE, orient="row")


def english_rows(pairs: pl.DataFrame) -> pl.DataFrame:
    """The source itself, with the columns of `MultilingualPairs`."""
    calls = {f"{name}_calls": pl.lit([], dtype=pl.List(pl.String)) for name in TEXTS}
    columns = {"language": pl.lit(ENGLISH), "source": pl.col("subset"), "translator": pl.lit("none")}
    return pairs.with_columns(**columns, **calls).select(ROWS.names())
