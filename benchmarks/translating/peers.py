"""Build like the original scripts: `datasets.Dataset.map`, column by column, in batches of 32.

    python -m translating.peers '{"folder": ..., "out": ..., "languages": ["deu_Latn"], "processes": 0, "checks": true}'

The original scripts call the translator inside the mapped function; here each text is looked up in a dict of recorded
translations, which costs almost nothing. They translate one language per run; here one process translates all of them
and starts only once. Without checks, final texts are looked up, as the scripts write the replies unchanged. With
checks, the builder's own functions mask, split, join and check the texts. Neither variant keeps calls, digests or a
manifest, and neither drops rows.
"""

import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from datasets import load_dataset

from translating.protocol import ANSWERS, ENGLISH, TEXTS, Peer

COLUMNS = ("prompt", "chosen", "rejected")
BATCH = 32
CODE_ANSWERS = "hep-"

Batch = dict[str, list[Any]]


def main(peer: Peer) -> None:
    """Write a Parquet file per language."""
    if peer.checks:
        _load_identifier()
    for code in peer.languages:
        rows = load_dataset("json", data_files=str(Path(peer.folder) / ENGLISH), split="train")
        made = rows.map(
            _checked if peer.checks else _looked_up,
            batched=True,
            batch_size=BATCH,
            num_proc=peer.processes or None,
            fn_kwargs={"folder": peer.folder, "code": code},
        )
        made.to_parquet(str(Path(peer.out) / f"{code}.parquet"))


def _looked_up(batch: Batch, *, folder: str, code: str) -> Batch:
    """A batch in another language; answers that are code stay."""
    known = _known(folder, TEXTS, code)
    made: Batch = {"language": [code] * len(batch["id"])}
    for column in COLUMNS:
        made[column] = [
            text if _stays(column, subset) else known[text]
            for text, subset in zip(batch[column], batch["subset"], strict=True)
        ]
    return made


def _checked(batch: Batch, *, folder: str, code: str) -> Batch:
    """The same with the builder's checks; `reason` says what is wrong with a row."""
    made: Batch = {"language": [code] * len(batch["id"])}
    reasons = [""] * len(batch["id"])
    for column in COLUMNS:
        made[column] = list(batch[column])
        numbers = [number for number, subset in enumerate(batch["subset"]) if not _stays(column, subset)]
        translated = _translated([batch[column][number] for number in numbers], folder, code)
        for number, (translation, reason) in zip(numbers, translated, strict=True):
            made[column][number] = translation
            reasons[number] = reasons[number] or reason
    for number, (chosen, rejected) in enumerate(zip(made["chosen"], made["rejected"], strict=True)):
        if chosen.strip() == rejected.strip():
            reasons[number] = reasons[number] or "identical answers"
    return made | {"reason": reasons}


def _translated(texts: list[str], folder: str, code: str) -> list[tuple[str, str]]:
    """The translations and what is wrong with them: whole texts first, failed ones cut, as the builder does."""
    # Here, so that the variant without checks need not load the builder.
    from build_multilingual.masking import mask
    from build_multilingual.pieces import split_pieces
    from build_multilingual.recipe import ChecksTable
    from build_multilingual.translate import STRATEGIES
    from build_multilingual.translators.google import CODE_POINTS
    from build_multilingual.valid_translations import TranslatedTexts, check_translations
    from pluralbench_schemas import LANGUAGES

    masked, limits = [mask(text) for text in texts], ChecksTable()
    results = [("", "to do")] * len(texts)
    for strategy, known in zip(STRATEGIES, _known(folder, ANSWERS, code), strict=True):
        numbers = [number for number, (_, reason) in enumerate(results) if reason]
        answered = []
        for number in numbers:
            pieces = split_pieces(masked[number], strategy, CODE_POINTS)
            answers = [("answer", known[piece.text]) for piece in pieces if piece.translate]
            answered.append((masked[number], pieces, answers))
        checked = check_translations(TranslatedTexts(LANGUAGES[code], limits, strategy, answered))
        for number, result in zip(numbers, checked, strict=True):
            results[number] = result
    return results


def _stays(column: str, subset: str) -> bool:
    return column != "prompt" and subset.startswith(CODE_ANSWERS)


@lru_cache(maxsize=1)  # languages come one after the other
def _known(folder: str, kind: str, code: str) -> Any:
    return json.loads((Path(folder) / kind / f"{code}.json").read_text("utf-8"))


def _load_identifier() -> None:
    """Load what tells languages before processes are forked, or each would load it again for each language."""
    from build_multilingual.language_id import identify

    identify(["Each of the two processes gets what its parent had loaded before they were forked."])


if __name__ == "__main__":
    main(Peer(**json.loads(sys.argv[1])))
