"""PandaLM's test set into two languages: Google's client, a server on loopback, and Apertium behind it.

A message costs a start of Apertium, which for French takes two seconds. Spanish is translated at once and Italian by
way of Catalan; each further language would only be more of the same.
"""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
from build_multilingual.cli import main
from build_multilingual.masking import mask
from commands import in_process, refused
from pluralbench_calls import read_ledger
from pluralbench_release import rebuild, verify
from pluralbench_schemas import LANGUAGES
from translation_server import (
    BAD_TEXT,
    QUOTA,
    UNAVAILABLE,
    WAYS,
    Fault,
    TranslationServer,
    by_apertium,
    least_messages,
    serve,
)

PANDALM = Path(__file__).parents[2].parent / "shared" / "data/multilingual/pandalm_testset-v1.json"
MODES = Path("/usr/share/apertium/modes")
MISSING = sorted(
    {
        pair
        for way in WAYS.values()
        for pair in way
        if shutil.which("apertium") is None or not (MODES / f"{pair}.mode").is_file()
    }
)
CODES = ["spa_Latn", "ita_Latn"]

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not PANDALM.is_file(), reason=f"PandaLM's test set is not at {PANDALM}"),
    pytest.mark.skipif(bool(MISSING), reason=f"Apertium has no {', '.join(MISSING)} here"),
]


def pandalm() -> list[dict[str, Any]]:
    """The pairs that most annotators decided alike and that are not ties: 1 and 2 name the better answer, 0 none."""
    found = []
    for row in json.loads(PANDALM.read_text(encoding="utf-8")):
        label, votes = Counter(row[f"annotator{number}"] for number in (1, 2, 3)).most_common(1)[0]
        if label == 0 or votes < 2:
            continue
        answers = {number: str(row[f"response{number}"]) for number in (1, 2)}  # some are `true`
        prompt = "\n\n".join(part for part in (row["instruction"], row["input"]) if part)
        found.append(
            {
                "id": row["idx"],
                "prompt": prompt,
                "chosen": answers.pop(label),
                "rejected": answers.popitem()[1],
                "subset": row["motivation_app"],
            }
        )
    return found


def test_pandalm_by_google_with_apertium_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = pandalm()
    assert len(found) == 894
    pairs = found[::40]  # Apertium is slow
    source, out = tmp_path / "pandalm.jsonl", tmp_path / "out"
    source.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in pairs), encoding="utf-8")
    # A sentence that is in one row alone, which the server never takes.
    times = Counter(row[side] for row in pairs for side in ("chosen", "rejected"))
    (lost, bad), *_ = (
        (row["id"], row["chosen"])
        for row in pairs
        if times[row["chosen"]] == 1
        and 40 < len(row["chosen"]) < 90
        and row["chosen"].find(".") == len(row["chosen"]) - 1
    )
    exhausted = [True]

    def faults(request: Any, number: int) -> Fault | None:
        if number in {0, 3}:
            return UNAVAILABLE
        if number in {1, 5}:
            return QUOTA
        if (
            exhausted[0]
            and request.target_language_code == "it"
            and (bad in request.contents or len(server.texts("it")) > 40)
        ):
            return QUOTA  # until tomorrow
        return BAD_TEXT if bad in request.contents else None

    with serve(by_apertium, faults) as server:
        values = {
            "name": "pandalm-translated",
            "version": "1.0.0",
            "languages": CODES,
            "english": True,
            "source": {"location": str(source), "name": "PandaLM test set", "license": "apache-2.0"},
            "translator": {"name": "google"},
            "connection": {
                "project": "p",
                "endpoint": server.endpoint,
                "retry_seconds": 8.0,
                "price": 20.0,
                "max_cost": 100.0,
            },
        }
        (tmp_path / "recipe.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
        run = in_process("build-multilingual", main, monkeypatch, capsys)
        words = ["--recipe", tmp_path / "recipe.toml", "--out", out]
        refused(
            run(*words), "keeps refusing because of its quota", "texts in ita_Latn are recorded; rerun the same command"
        )
        assert not out.exists()
        recorded = read_ledger(out.with_name("out.work") / "ledger.sqlite").height
        exhausted[0] = False
        status, said = run(*words)
        assert status == 0, said

    calls = read_ledger(out / "provenance/ledger.parquet")
    assert f"{calls.height:,} recorded calls, {calls.height - recorded:,} of them new" in said
    assert {code.name for code in server.faults} == {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"}
    for code in CODES:
        check_messages(server, LANGUAGES[code].google, bad)
    check_rows(out, pairs, lost)

    # Without the server.
    # A release names no folder of this machine, so who rebuilds it says where the source is.
    assert verify(out) == []
    assert not any(rebuild(out, tmp_path / "again", sources=[str(source)]))
    status, said = run(*words)
    assert (status, "0 of them new" in said) == (0, True), said


def check_messages(server: TranslationServer, target: str, bad: str) -> None:
    """Texts share messages, hardly one goes out that could be spared, and no text is translated twice."""
    asked = {tuple(request.contents): None for request in server.requests if request.target_language_code == target}
    # Where a message is refused its halves follow, which is no matter of packing.
    whole = [texts for texts in asked if not any({*texts} < {*other} for other in asked if bad in other)]
    sent = server.texts(target)
    assert len(whole) <= least_messages(sent) + 3, "one for what is asked again, and one for the interruption"
    assert bad not in sent
    # What fails a check is asked once more in pieces, and a text of one sentence without spans is its own piece.
    assert sum(count - 1 for count in Counter(sent).values()) < 0.02 * len(sent)


def check_rows(out: Path, pairs: list[dict[str, Any]], lost: int) -> None:
    """Every pair is in all languages or dropped with a reason, and the numbers of the release say the same."""
    dropped = pl.read_parquet(out / "provenance/dropped.parquet")
    aside = pl.read_parquet(out / "provenance/set_aside.parquet")
    kept = {row["id"] for row in pairs} - {*dropped["id"]}
    assert len(kept) > 0.9 * len(pairs)
    assert set(dropped["id"]) == set(aside["id"])
    english = {row["id"]: row for row in pairs}
    for code in [*CODES, "eng_Latn"]:
        rows = pl.read_parquet(out / f"data/{code}/test.parquet")
        assert set(rows["id"]) == kept
        for row in rows.iter_rows(named=True):
            for side in ("prompt", "chosen", "rejected"):
                before = mask(english[row["id"]][side])
                assert row[side].count("\n") == before.restore(before.text).count("\n")
                for _, span in before.spans:
                    assert row[side].count(span) >= 1
    assert dropped.filter(id=lost).select("language", "reason").rows() == [
        (code, "chosen: refused by the translator") for code in sorted(CODES)
    ]
