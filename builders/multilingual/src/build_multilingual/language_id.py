"""Identify the languages of many texts at once, with the model of py3langid."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pluralbench_schemas import LANGUAGES

BATCH = 1000  # texts at a time
HALF = 32  # bits of the number of a feature


class Model(NamedTuple):
    """Naive Bayes over byte sequences, which a finite automaton finds; see `py3langid.langid.LanguageIdentifier`.

    Attributes:
        languages: Codes of the languages.
        priors: Logarithm of the probability of each language.
        features: Logarithm of the probability of each feature in each language.
        moves: Next state by row and byte.
        rows: First entry in `moves` of each state.
        found: Feature that is found in each state, or -1.
    """

    languages: Sequence[str]
    priors: NDArray[np.float64]
    features: NDArray[np.float64]
    moves: NDArray[np.unsignedinteger[Any]]
    rows: NDArray[np.int64]
    found: NDArray[np.int64]


@cache
def _model() -> Model:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    # Only the supported languages: similar other ones would only cause mistakes.
    identifier.set_languages(sorted({language.langid for language in LANGUAGES.values()}))
    return Model(
        identifier.nb_classes,
        identifier.nb_pc.astype(float),
        identifier.nb_ptc.astype(float),
        np.asarray(identifier.tk_nextmove),
        np.array(identifier.tk_row, np.int64) << 8,
        np.array(identifier.tk_output),
    )


def identify(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Identify the language of each text as py3langid does; return its code and the confidence from 0 to 1."""
    encoded = [_encode(text) for text in texts]
    # Texts of similar length share the steps through the automaton.
    order = sorted(range(len(texts)), key=lambda number: -len(encoded[number]))
    results = [("", 0.0)] * len(texts)
    for start in range(0, len(order), BATCH):
        numbers = order[start : start + BATCH]
        for number, result in zip(numbers, _identify_batch([encoded[number] for number in numbers]), strict=True):
            results[number] = result
    return results


def _encode(text: str) -> bytes:
    text = " ".join(text.split())
    return unicodedata.normalize("NFC", text.lower() if text.isupper() else text).encode(errors="surrogatepass")


def _identify_batch(encoded: Sequence[bytes]) -> list[tuple[str, float]]:
    """Identify the languages of texts, the longest first."""
    from scipy.sparse import csr_array

    model = _model()
    lengths = np.array([*map(len, encoded)])
    letters = np.zeros((len(encoded), lengths[0]), np.uint8)
    letters[np.arange(lengths[0]) < lengths[:, None]] = np.frombuffer(b"".join(encoded), np.uint8)
    found = np.full(letters.T.shape, -1)
    states = np.zeros(len(encoded), np.int64)
    for step, column in enumerate(np.ascontiguousarray(letters.T)):
        running = np.count_nonzero(lengths > step)
        states = model.moves[model.rows[states[:running]] + column[:running]]
        found[step, :running] = model.found[states]
    visits = (np.broadcast_to(np.arange(len(encoded)), found.shape) << HALF | found)[found >= 0]
    visits.sort()
    starts = np.flatnonzero(np.diff(visits, prepend=-1))
    counts = np.diff(starts, append=len(visits))
    ends = np.searchsorted(visits[starts], np.arange(len(encoded) + 1) << HALF)
    shape = len(encoded), len(model.features)
    scores = csr_array((np.log1p(counts), visits[starts] & (1 << HALF) - 1, ends), shape=shape) @ model.features
    scores[np.diff(ends) > 0] += model.priors  # without any feature all languages are equally likely
    scores /= np.sqrt(np.maximum(lengths, 1))[:, None]
    scores = np.exp(scores - scores.max(1, keepdims=True))
    scores /= scores.sum(1, keepdims=True)
    best = scores.argmax(1)
    return [(model.languages[place], float(row[place])) for place, row in zip(best, scores, strict=True)]
