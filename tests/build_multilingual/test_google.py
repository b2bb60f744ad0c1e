"""Google Cloud Translation through its own client: what is sent, what comes back, what fails, and what is kept."""

import datetime as dt
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import grpc
import polars as pl
import pytest
import tomli_w
from build_multilingual import MultilingualRecipe, build
from build_multilingual.masking import FINDERS
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import translator
from build_multilingual.translators.google import CODE_POINTS, REFUSED_IN_A_ROW
from commands import command, environment, fails, script
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pluralbench_calls import read_ledger
from pluralbench_runs import read_recipe
from pluralbench_schemas import LANGUAGES
from translation_server import (
    BAD_LANGUAGE,
    BAD_TEXT,
    PROJECT_NUMBER,
    QUOTA,
    UNAVAILABLE,
    Fault,
    by_words,
    in_order,
    least_messages,
    refusing,
    serve,
)

PROJECT = "the-builders-own"
GO_ON = "; run the same command again to go on."
Run = Callable[..., tuple[int, str]]
Row = Mapping[str, Any]

VOCABULARY = """
    the a bread garden window river teacher winter music never always small bright quiet letter morning kitchen walks
    reads finds keeps brings under before because through many few old young neighbour station market bicycle ticket
    coffee mountain village children answer question story paper table yellow green carries opens remembers slowly
"""


def prose(name: str, words: int = 20) -> str:
    """English sentences, always the same for a name and others for another."""
    draws = random.Random(name)
    vocabulary, sentences = VOCABULARY.split(), []
    while words > 0:
        count = min(words, draws.randint(8, 14))
        sentences.append(" ".join(draws.choice(vocabulary) for _ in range(count)).capitalize() + ".")
        words -= count
    return " ".join(sentences)


def rows(count: int, words: int = 20, subset: str = "chat") -> list[dict[str, Any]]:
    sides = ("prompt", "chosen", "rejected")
    return [
        {"id": number, **{side: prose(f"{side} {number}", words) for side in sides}, "subset": subset}
        for number in range(count)
    ]


def recipe(folder: Path, endpoint: str, pairs: Sequence[Row], **tables: Any) -> Path:
    """A recipe for Spanish by the server at `endpoint`; a table given here adds to the one that is there."""
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in pairs), encoding="utf-8")
    values: dict[str, Any] = {
        "languages": ["spa_Latn"],
        "source": {"location": str(path)},
        "translator": {"name": "google"},
        "connection": {"project": PROJECT, "endpoint": endpoint, "retry_seconds": 30.0, "concurrency": 1},
    }
    for name, value in tables.items():
        values[name] = values[name] | value if isinstance(value, dict) and name in values else value
    if values["connection"]["project"] is None:
        del values["connection"]["project"]
    (folder / "recipe.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
    return folder / "recipe.toml"


def released(out: Path, config: str = "spa_Latn") -> pl.DataFrame:
    return pl.read_parquet(out / f"data/{config}/test.parquet")


def record(out: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(out / f"provenance/{name}.parquet")


def calls(out: Path) -> pl.DataFrame:
    return read_ledger(out / "provenance/ledger.parquet")


def digests(out: Path) -> dict[str, str]:
    manifest = json.loads((out / "provenance/manifest.json").read_text(encoding="utf-8"))
    return {table["config"]: table["digest"] for table in manifest["tables"]}


def texts_of(pairs: Sequence[Row]) -> list[str]:
    return [row[side] for row in pairs for side in ("prompt", "chosen", "rejected")]


def refused(result: tuple[int, str], sentence: str) -> None:
    """Exactly this sentence on standard error, and status 2."""
    assert result == (2, f"Error: {sentence}\n")


# ---- What is sent and what comes back


def test_texts_share_messages_and_each_translation_finds_its_place(run: Run, tmp_path: Path) -> None:
    pairs = rows(300, 40)
    with serve(by_words) as server:
        status, said = run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")
    assert status == 0, said
    assert "900 recorded calls, 900 of them made now" in said
    sent = server.texts()
    assert sorted(sent) == sorted(texts_of(pairs)), "each text once, as it is"
    assert len(server.requests) == least_messages(sent) == 9
    for request, headers in zip(server.requests, server.metadata, strict=True):
        assert request.parent == f"projects/{PROJECT}/locations/global"
        assert request.model == f"projects/{PROJECT}/locations/global/models/general/nmt"
        assert (request.mime_type, request.source_language_code, request.target_language_code) == (
            "text/plain",
            "en",
            "es",
        )
        assert not request.glossary_config.glossary
        assert headers["x-goog-request-params"] == f"parent=projects/{PROJECT}/locations/global"
    made = released(tmp_path / "out")
    assert made["id"].to_list() == list(range(300))
    for row, pair in zip(made.iter_rows(named=True), pairs, strict=True):
        for side in ("prompt", "chosen", "rejected"):
            assert [row[side]] == by_words([pair[side]], "en", "es")
    recorded = calls(tmp_path / "out")
    for side in ("prompt", "chosen", "rejected"):
        texts = recorded.join(made.select(pl.col(f"{side}_calls").list.first().alias("key"), side), on="key")
        assert texts["text"].to_list() == texts[side].to_list()
    assert recorded["prompt_tokens"].sum() == sum(map(len, sent)), "characters are what is billed"


def test_each_language_is_asked_in_messages_of_its_own(run: Run, tmp_path: Path) -> None:
    languages = ["deu_Latn", "heb_Hebr", "hin_Deva", "arb_Arab", "vie_Latn"]
    pairs = rows(6)
    with serve(by_words) as server:
        asked = recipe(tmp_path, server.endpoint, pairs, languages=languages)
        status, said = run("--recipe", asked, "--out", tmp_path / "out")
    assert status == 0, said
    assert [request.target_language_code for request in server.requests] == ["de", "iw", "hi", "ar", "vi"]
    for code in languages:
        made = released(tmp_path / "out", code)
        assert set(made["language"]) == {code}
        assert made["prompt"].to_list() == by_words([row["prompt"] for row in pairs], "en", LANGUAGES[code].google)


def test_equal_texts_are_sent_once(run: Run, tmp_path: Path) -> None:
    pairs = [row | {"prompt": prose("the same")} for row in rows(50)]
    with serve(by_words) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    assert Counter(server.texts())[prose("the same")] == 1
    assert released(tmp_path / "out")["prompt"].n_unique() == 1


PROTECTED = {
    "fenced code": "```python\nprint('good morning')  # a comment\n```",
    "inline code": "`the_table.open(window)`",
    "LaTeX": r"$x^2 + \frac{a}{b}$",
    "URL": "https://example.org/the/old/garden?page=2#top",
    "e-mail address": "the.teacher@school.example",
    "placeholder": "{user_name}",
    "number": "1,250.75",
}


def test_the_protected_spans_of_this_test_are_all_kinds() -> None:
    assert list(PROTECTED) == list(dict.fromkeys(kind for kind, _ in FINDERS))


@pytest.mark.parametrize("kind", PROTECTED)
def test_what_is_protected_is_never_sent_and_comes_back_as_it_was(run: Run, tmp_path: Path, kind: str) -> None:
    span = PROTECTED[kind]
    around = "\n" if kind == "fenced code" else " "
    text = f"{prose('before')}{around}{span}{around}{prose('after')}"
    pairs = [row | {"prompt": text, "chosen": f"{text}\n\n{row['chosen']}"} for row in rows(3)]
    with serve(by_words) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    assert not [sent for sent in server.texts() if span in sent]
    made = released(tmp_path / "out")
    assert record(tmp_path / "out", "set_aside").is_empty()
    before, after = by_words([prose("before"), prose("after")], "en", "es")
    assert set(made["prompt"]) == {f"{before}{around}{span}{around}{after}"}
    assert all(chosen.startswith(f"{before}{around}{span}{around}{after}\n\n") for chosen in made["chosen"])


def test_a_text_whose_marks_are_lost_is_asked_again_cut_at_its_spans(run: Run, tmp_path: Path) -> None:
    text = f"{prose('before')} `one()` {prose('between')} `two()` {prose('after')}"
    pairs = [row | {"prompt": text} for row in rows(2)]

    def without_marks(texts: Sequence[str], source: str, target: str) -> list[str]:
        return [re.sub(r"\[\d+\]", "", text) for text in by_words(texts, source, target)]

    with serve(without_marks) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    made = released(tmp_path / "out")
    parts = by_words([prose("before"), prose("between"), prose("after")], "en", "es")
    assert set(made["prompt"]) == {f"{parts[0]} `one()` {parts[1]} `two()` {parts[2]}"}
    assert len(server.requests) == 2
    assert all(len(keys) > 3 for keys in made["prompt_calls"]), "a call for each sentence"


def test_answers_that_are_code_are_neither_sent_nor_changed(run: Run, tmp_path: Path) -> None:
    code = {"chosen": "def add(a, b):\n    return a + b  # the sum", "rejected": "def add(a, b):\n    return a - b"}
    pairs = [row | code for row in rows(4, subset="hep-python")]
    with serve(by_words) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    assert sorted(server.texts()) == sorted(row["prompt"] for row in pairs)
    made = released(tmp_path / "out")
    assert set(made["chosen"]) == {code["chosen"]}
    assert set(made["rejected"]) == {code["rejected"]}
    assert made["chosen_calls"].list.len().to_list() == [0] * 4


STRANGE = {
    "arb_Arab": "\u200fالقِطَّةُ «نائِمَةٌ» في الحَديقَةِ، و\u2067البَيتُ\u2069 كَبيرٌ جِدًّا وَجَميلٌ أَيضًا.\u200f",
    "heb_Hebr": "\u200fהַחָתוּל יָשֵׁן בַּגִּנָּה, וְהַבַּיִת גָּדוֹל מְאֹד וְיָפֶה גַּם כֵּן; צה״ל וגם ג׳ירף.\u200f",
    "hin_Deva": "बिल्ली बगीचे में सो रही है, और क\u094d\u200dष घर बहुत बड़ा है; ज़िंदगी में फ़र्क़ पड़ता है।",
    "vie_Latn": unicodedata.normalize("NFD", "Con mèo đang ngủ trong vườn, và ngôi nhà rất lớn, đẹp lắm, thật vậy."),
    "ces_Latn": unicodedata.normalize("NFD", "Příliš žluťoučký kůň úpěl ďábelské ódy, a kočka spí na zahradě."),
    "deu_Latn": "Die Katze schläft im Garten, und das Haus ist sehr groß\u00a0– 👩\u200d👩\u200d👧 Schön\u00adheit.",
}


@pytest.mark.parametrize("code", STRANGE)
def test_right_to_left_and_combining_text_comes_back_byte_for_byte(run: Run, tmp_path: Path, code: str) -> None:
    text = STRANGE[code]
    translations = [text, f"{text}\n\n{text}", f"- {text}\n- {text}\n\n[0] {text}"]
    pair = {
        "id": 7,
        "prompt": prose("p", 9),
        "chosen": prose("c", 18),
        "rejected": prose("r", 27) + " 15%",
        "subset": "s",
    }
    sent = [pair["prompt"], pair["chosen"], prose("r", 27) + " [0]"]
    known = dict(zip(sent, translations, strict=True))
    with serve(lambda texts, *_: [known[text] for text in texts]) as server:
        asked = recipe(tmp_path, server.endpoint, [pair], languages=[code])
        status, said = run("--recipe", asked, "--out", tmp_path / "out")
    assert status == 0, said
    (row,) = released(tmp_path / "out", code).iter_rows(named=True)
    wanted = [*translations[:2], translations[2].replace("[0]", "15%")]
    assert [row[side].encode() for side in ("prompt", "chosen", "rejected")] == [text.encode() for text in wanted]
    assert sorted(calls(tmp_path / "out")["text"]) == sorted(translations), "recorded as it came"


def test_a_translation_of_only_white_space_is_empty(run: Run, tmp_path: Path) -> None:
    pairs = rows(4)
    pairs[2]["chosen"] = "Empty this one, please, without any other word in the answer."

    def empty(texts: Sequence[str], source: str, target: str) -> list[str]:
        return [" \u200b\n" if "Empty" in text else by_words([text], source, target)[0] for text in texts]

    with serve(empty) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    assert released(tmp_path / "out")["id"].to_list() == [0, 1, 3]
    assert record(tmp_path / "out", "dropped").rows() == [(2, "spa_Latn", "check", "chosen: no letters")]


def test_a_long_text_is_cut_at_ends_of_sentences_and_joined(run: Run, tmp_path: Path) -> None:
    long = "\n\n".join(prose(f"paragraph {number}", 400) for number in range(30))
    assert len(long) > 2 * CODE_POINTS
    pairs = [row | {"chosen": f"{long} {row['chosen']}"} for row in rows(2)]
    with serve(by_words) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    assert all(sum(map(len, request.contents)) <= CODE_POINTS for request in server.requests)
    parts = [text for text in server.texts() if len(text) > 1000]
    assert all(text.endswith(".") for text in parts)
    assert len(server.requests) <= least_messages(server.texts()) + 1
    made = released(tmp_path / "out")
    assert made["chosen"].to_list() == by_words([row["chosen"] for row in pairs], "en", "es")
    assert made["chosen_calls"].list.len().to_list() == [3, 3]


def test_a_long_text_without_blanks_is_cut_all_the_same(run: Run, tmp_path: Path) -> None:
    pairs = rows(2)
    pairs[0]["rejected"] = "mañana" * 5_100
    with serve(by_words) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    assert sorted(map(len, server.texts()))[-4:] == [600, 600, 30_000, 30_000], "asked twice"
    assert released(tmp_path / "out")["id"].to_list() == [1]
    assert record(tmp_path / "out", "dropped")["reason"].to_list() == ["rejected: too short"]


# ---- Identity: model, glossary, replay


def test_a_model_is_named_without_the_project(run: Run, tmp_path: Path) -> None:
    with serve(by_words) as server:
        asked = recipe(tmp_path, server.endpoint, rows(3), connection={"location": "us-central1"})
        assert run("--recipe", asked, "--translator", "google:TL123", "--out", tmp_path / "out")[0] == 0
    (request,) = server.requests
    assert request.model == f"projects/{PROJECT}/locations/us-central1/models/TL123"
    assert set(released(tmp_path / "out")["translator"]) == set(calls(tmp_path / "out")["model"]) == {"TL123"}
    for path in (tmp_path / "out").rglob("*"):
        # The recipe, which is in the manifest too, says how the build was made, connection and all.
        if path.is_file() and path.name not in {"recipe.toml", "manifest.json"}:
            assert PROJECT.encode() not in path.read_bytes(), path
            assert PROJECT_NUMBER.encode() not in path.read_bytes(), path


GLOSSARY = f"projects/{PROJECT}/locations/us-central1/glossaries/houses"


def test_a_glossary_is_sent_and_what_it_made_is_taken(run: Run, tmp_path: Path) -> None:
    words = ["--recipe", recipe(tmp_path, "", rows(12)), "--location", "us-central1", "--glossary", GLOSSARY]
    with serve(by_words) as server:
        status, said = run(*words, "--endpoint", server.endpoint, "--out", tmp_path / "glossed")
    assert status == 0, said
    (request,) = server.requests
    assert request.glossary_config.glossary == GLOSSARY
    assert request.parent == f"projects/{PROJECT}/locations/us-central1"
    made = released(tmp_path / "glossed")
    plain = [text.replace("casa", "CASA") for text in by_words([row["prompt"] for row in rows(12)], "en", "es")]
    assert made["prompt"].to_list() == plain
    assert any("CASA" in text for text in plain)


def test_a_glossary_is_part_of_what_is_asked(run: Run, tmp_path: Path) -> None:
    with serve(by_words) as server:
        asked = recipe(tmp_path, server.endpoint, rows(2))
        assert run("--recipe", asked, "--out", tmp_path / "plain")[0] == 0
        words = ["--recipe", asked, "--glossary", GLOSSARY, "--out", tmp_path / "glossed"]
        status, said = run(*words, "--replay", tmp_path / "plain")
        assert status == 2
        assert "The ledger has no answer for the prompt of 0 in spa_Latn (model general/nmt at" in said
        assert "and a replay sends nothing. 0 of 6 texts in spa_Latn are recorded.\n" in said
        assert run(*words, "--reuse", tmp_path / "plain", "--fresh")[0] == 0
        assert len(server.requests) == 2, "nothing of the plain translations serves"
        assert run("--recipe", asked, "--glossary", "other", "--out", tmp_path / "out", "--reuse", words[-1])[0] == 0
        assert len(server.requests) == 3


def test_a_replay_sends_nothing_and_makes_the_same(run: Run, tmp_path: Path) -> None:
    pairs = [*rows(20), *rows(24, subset="hep-go")[20:]]
    with serve(by_words) as server:
        asked = recipe(tmp_path, server.endpoint, pairs, languages=["spa_Latn", "arb_Arab"], english=True)
        assert run("--recipe", asked, "--out", tmp_path / "made")[0] == 0
        sent = len(server.requests)
        status, said = run("--recipe", asked, "--out", tmp_path / "made")
        assert (status, len(server.requests)) == (0, sent)
        assert "0 of them made now" in said
        for known in (tmp_path / "made", tmp_path / "made/provenance/ledger.parquet"):
            out = tmp_path / f"again-{known.suffix}"
            assert run("--recipe", asked, "--out", out, "--replay", known)[0] == 0
            assert digests(out) == digests(tmp_path / "made")
        assert len(server.requests) == sent
    # Without a server, a project and credentials.
    asked = recipe(tmp_path, "", pairs, languages=["spa_Latn", "arb_Arab"], english=True, connection={"project": None})
    assert run("--recipe", asked, "--out", tmp_path / "last", "--replay", tmp_path / "made")[0] == 0
    assert digests(tmp_path / "last") == digests(tmp_path / "made")


# ---- What fails


def test_a_failing_server_and_a_quota_are_waited_out(run: Run, tmp_path: Path) -> None:
    with serve(by_words, in_order(UNAVAILABLE, QUOTA)) as server:
        status, said = run("--recipe", recipe(tmp_path, server.endpoint, rows(5)), "--out", tmp_path / "out")
    assert status == 0, said
    assert len(server.requests) == 3
    assert len({tuple(request.contents) for request in server.requests}) == 1, "the same message"
    assert sorted(server.texts()) == sorted(texts_of(rows(5)))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (UNAVAILABLE, "keeps failing (The service is currently unavailable)."),
        (Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "Daily limit."), "keeps refusing for its quota (Daily limit)."),
        (Fault(grpc.StatusCode.INTERNAL, "Internal error."), "keeps failing (Internal error)."),
        (Fault(grpc.StatusCode.DEADLINE_EXCEEDED, "Too late."), "keeps failing (Too late)."),
        (Fault(grpc.StatusCode.UNAUTHENTICATED, "Expired."), "does not accept the credentials (Expired)."),
        (Fault(grpc.StatusCode.PERMISSION_DENIED, "No role."), "does not accept the credentials (No role)."),
        (Fault(grpc.StatusCode.NOT_FOUND, "No model."), "does not know what is asked (No model)."),
        (Fault(grpc.StatusCode.DATA_LOSS, "Gone."), "keeps failing (Gone)."),
        (BAD_LANGUAGE, "refuses what is asked (Target language: xx is not supported)."),
    ],
)
def test_what_concerns_every_text_is_said_in_a_sentence(run: Run, tmp_path: Path, fault: Fault, sentence: str) -> None:
    with serve(by_words, lambda *_: fault) as server:
        asked = recipe(tmp_path, server.endpoint, rows(4), connection={"retry_seconds": 0.3})
        result = run("--recipe", asked, "--out", tmp_path / "out")
        refused(result, f"Google Cloud Translation {sentence} 0 of 12 texts in spa_Latn are recorded{GO_ON}")
        assert len(server.requests) == 1 or "keeps" in sentence
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.work").exists(), "nothing was done, so nothing binds the next run"


def test_a_server_that_is_not_there_is_said_in_a_sentence(run: Run, tmp_path: Path) -> None:
    asked = recipe(tmp_path, "http://127.0.0.1:9", rows(1), connection={"retry_seconds": 0.3})
    status, said = run("--recipe", asked, "--out", tmp_path / "out")
    assert status == 2
    assert said.startswith("Error: Google Cloud Translation keeps failing (failed to connect to all addresses")
    assert said.endswith(f"). 0 of 3 texts in spa_Latn are recorded{GO_ON}\n")


def test_a_quota_that_ends_midway_loses_nothing_and_the_same_command_sends_the_rest(run: Run, tmp_path: Path) -> None:
    pairs = rows(4, 1350)  # 12 texts, three a message
    spent = [2]
    with serve(by_words, lambda _, number: QUOTA if number >= spent[0] else None) as server:
        asked = recipe(tmp_path, server.endpoint, pairs, connection={"retry_seconds": 0.3})
        words = ["--recipe", asked, "--out", tmp_path / "out"]
        refused(
            run(*words),
            "Google Cloud Translation keeps refusing for its quota (Quota exceeded for quota metric 'v3 and v3beta "
            "general model characters' and limit 'v3 and v3beta general model characters per minute per project' of "
            f"service 'translate.googleapis.com'). 6 of 12 texts in spa_Latn are recorded{GO_ON}",
        )
        done = server.texts()
        assert len(done) == 6
        assert not (tmp_path / "out").exists()
        assert read_ledger(tmp_path / "out.work/ledger.sqlite").height == 6
        spent[0] = 10_000
        status, said = run(*words)
        assert status == 0, said
        assert "12 recorded calls, 6 of them made now" in said
    assert Counter(server.texts()) == Counter(texts_of(pairs)), "each text was translated once"
    assert server.texts()[:6] == done


def test_one_refused_text_is_found_and_the_rest_is_kept(run: Run, tmp_path: Path) -> None:
    pairs = rows(30)
    pairs[17]["chosen"] = "This forbidden sentence is one that the translator will never take from anybody."
    bad = pairs[17]["chosen"]
    with serve(by_words, refusing(bad)) as server:
        status, said = run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")
    assert status == 0, said
    assert Counter(server.texts()) == Counter(text for text in texts_of(pairs) if text != bad), "the others once each"
    assert len(server.requests) <= 1 + 2 * 7 + 1, "halves of 90 texts, and the text alone once more"
    assert record(tmp_path / "out", "dropped").rows() == [
        (17, "spa_Latn", "check", "chosen: refused by the translator")
    ]
    assert released(tmp_path / "out")["id"].to_list() == [number for number in range(30) if number != 17]
    errors = calls(tmp_path / "out").filter(outcome="error")
    assert errors.select("text", "finish_reason", "label").unique().rows() == [
        ("Request contains an invalid argument", "INVALID_ARGUMENT", "the chosen of 17 in spa_Latn")
    ]


def test_a_refused_text_may_pass_sentence_by_sentence(run: Run, tmp_path: Path) -> None:
    pairs = rows(5)
    bad = pairs[3]["prompt"] = f"{prose('one')} {prose('two')}"
    with serve(by_words, refusing(bad)) as server:
        assert run("--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out")[0] == 0
    made = released(tmp_path / "out")
    assert made.height == 5
    assert [made["prompt"][3]] == by_words([bad], "en", "es")


def test_refused_texts_are_asked_again_on_demand(run: Run, tmp_path: Path) -> None:
    pairs = rows(8)
    pairs[5]["prompt"] = "This forbidden sentence is one that the translator will not take today."
    words = ["--recipe", recipe(tmp_path, "", pairs), "--out", tmp_path / "out", "--endpoint"]
    with serve(by_words, refusing(pairs[5]["prompt"])) as server:
        assert run(*words, server.endpoint)[0] == 0
    with serve(by_words) as server:
        assert run(*words, server.endpoint)[0] == 0
        assert server.requests == []
        assert released(tmp_path / "out").height == 7
        status, said = run(*words, server.endpoint, "--retry-errors")
        assert status == 0, said
    assert server.texts() == [pairs[5]["prompt"]]
    assert released(tmp_path / "out").height == 8


def test_when_text_after_text_is_refused_it_is_not_the_texts(run: Run, tmp_path: Path) -> None:
    broken = [True]
    with serve(by_words, lambda *_: BAD_TEXT if broken[0] else None) as server:
        words = ["--recipe", recipe(tmp_path, server.endpoint, rows(40)), "--out", tmp_path / "out"]
        refused(
            run(*words),
            "Google Cloud Translation refuses what is asked (Request contains an invalid argument). "
            f"{REFUSED_IN_A_ROW - 1} of 120 texts in spa_Latn are recorded{GO_ON}",
        )
        alone = [request for request in server.requests if len(request.contents) == 1]
        assert len(alone) == REFUSED_IN_A_ROW
        assert len(server.requests) < 30
        broken[0] = False
        assert run(*words)[0] == 0
    assert released(tmp_path / "out").height == 40, "those that were refused got through, sentence by sentence"


def test_what_is_translated_while_a_refused_text_is_looked_for_is_not_lost(run: Run, tmp_path: Path) -> None:
    pairs = rows(30)
    bad = pairs[3]["chosen"]
    ended = threading.Event()

    def faults(request: Any, _: int) -> Fault | None:
        if bad in request.contents:
            return BAD_TEXT
        if ended.is_set():
            return QUOTA
        if len(server.answered) == 2:
            ended.set()
        return None

    with serve(by_words, faults) as server:
        asked = recipe(tmp_path, server.endpoint, pairs, connection={"retry_seconds": 0.3})
        status, said = run("--recipe", asked, "--out", tmp_path / "out")
    assert status == 2
    assert server.texts(), "paid for"
    assert {*by_words(server.texts(), "en", "es")} <= recorded_texts(tmp_path / "out.work/ledger.sqlite")
    assert "keeps refusing for its quota" in said


def test_another_number_of_texts_than_were_sent_is_not_believed(run: Run, tmp_path: Path) -> None:
    pairs = rows(4, 1350)
    short = [1]

    def fewer(texts: Sequence[str], source: str, target: str) -> list[str]:
        translated = by_words(texts, source, target)
        return translated[1:] if len(server.answered) == short[0] else translated

    with serve(fewer) as server:
        words = ["--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out"]
        refused(
            run(*words),
            "Google Cloud Translation answered 2 texts for 3 sent, so which is which cannot be told, and none of them "
            f"is recorded. 3 of 12 texts in spa_Latn are recorded{GO_ON}",
        )
        short[0] = 10_000
        assert run(*words)[0] == 0
    made = released(tmp_path / "out")
    for side in ("prompt", "chosen", "rejected"):
        assert made[side].to_list() == by_words([row[side] for row in pairs], "en", "es")


# ---- Credentials, project, host


def lonely(monkeypatch: pytest.MonkeyPatch, home: Path) -> dict[str, str]:
    """An environment in which nothing of Google is set, and the machine is none of theirs."""
    for name in list(os.environ):
        if name.startswith(("GOOGLE_", "GCE_", "CLOUDSDK_", "GCLOUD_")):
            monkeypatch.delenv(name)
    home.mkdir()
    values = {"HOME": str(home), "CLOUDSDK_CONFIG": str(home / "gcloud"), "NO_GCE_CHECK": "true"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


NO_CREDENTIALS = (
    "Google Cloud has no credentials here ({reason}); run `gcloud auth application-default login` or set "
    "GOOGLE_APPLICATION_CREDENTIALS to the file of a service account. 0 of 3 texts in spa_Latn are recorded" + GO_ON
)


def test_no_credentials(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lonely(monkeypatch, tmp_path / "home")
    result = run("--recipe", recipe(tmp_path, "", rows(1)), "--out", tmp_path / "out")
    reason = (
        "Your default credentials were not found. To set up Application Default Credentials, see "
        "https://cloud.google.com/docs/authentication/external/set-up-adc for more information"
    )
    refused(result, NO_CREDENTIALS.format(reason=reason))
    assert not (tmp_path / "out.work").exists()


def test_credentials_that_are_not_where_they_should_be(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lonely(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")
    result = run("--recipe", recipe(tmp_path, "", rows(1)), "--out", tmp_path / "out")
    refused(result, NO_CREDENTIALS.format(reason="File nowhere.json was not found"))


@pytest.mark.parametrize("text", ['{"type": "service_account", "private_key": "no"}', '{"type": "serv'])
def test_damaged_credentials_are_said_in_words(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    lonely(monkeypatch, tmp_path / "home")
    (tmp_path / "key.json").write_text(text, encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    status, said = run("--recipe", recipe(tmp_path, "", rows(1)), "--out", tmp_path / "out")
    assert status == 2
    assert "key.json" in said
    assert "Error(" not in said
    assert "((" not in said


def test_no_project(run: Run, tmp_path: Path) -> None:
    asked = recipe(tmp_path, "http://127.0.0.1:9", rows(1), connection={"project": None})
    refused(
        run("--recipe", asked, "--out", tmp_path / "out"),
        "Google Cloud Translation wants a project to bill: give --project.",
    )


@pytest.mark.parametrize(
    "host", ["translate.googleapis.com", "127.0.0.1.example.org", "localhost.example.org", "192.168.0.1", "10.0.0.1"]
)
def test_texts_are_not_sent_unencrypted_to_another_machine(run: Run, tmp_path: Path, host: str) -> None:
    refused(
        run("--recipe", recipe(tmp_path, f"http://{host}:8080", rows(1)), "--out", tmp_path / "out"),
        f"http://{host} would send texts unencrypted; http:// is for a server on this machine alone.",
    )


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://",
        "http://[::1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:port",
        "http://127.0.0.1:9/v3",
        "http://u:secret@127.0.0.1:9",
        "http://127.0.0.1@example.org",
        "https://127.0.0.1:9",
        "https://u:secret@translate.googleapis.com",
        "u:secret@127.0.0.1:9",
        "ftp://127.0.0.1",
        "127.0.0.1:9/v3",
        "http://127.0.0.1:9?key=secret",
        "127.0.0.1:9#secret",
        "127.0.0.1 :9",
    ],
)
def test_an_endpoint_of_another_form_is_refused_at_once_and_not_shown(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    keys, _ = service_account(tmp_path)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(keys))
    asked = recipe(tmp_path, endpoint, rows(1), connection={"retry_seconds": 0.3})
    refused(
        run("--recipe", asked, "--out", tmp_path / "out"),
        "The endpoint is neither a host such as translate-eu.googleapis.com nor http://127.0.0.1:PORT.",
    )
    assert not (tmp_path / "out.work").exists()


# ---- Encryption and keys, as with Google itself


def service_account(folder: Path) -> tuple[Path, grpc.ServerCredentials]:
    """The file of a service account that is nobody's, and a certificate for a server on this machine.

    The certificate is in `folder / "roots.pem"`, for clients that are to trust it.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    (folder / "roots.pem").write_bytes(certificate)
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": f"nobody@{PROJECT}.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "http://127.0.0.1:9/token",
    }
    (folder / "key.json").write_text(json.dumps(account), encoding="utf-8")
    return folder / "key.json", grpc.ssl_server_credentials([(pem, certificate)])


@pytest.mark.heavy
def test_a_service_account_over_an_encrypted_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = lonely(monkeypatch, tmp_path / "home")
    keys, credentials = service_account(tmp_path)
    env |= {
        "GOOGLE_APPLICATION_CREDENTIALS": str(keys),
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(tmp_path / "roots.pem"),
    }
    with serve(by_words, credentials=credentials) as server:
        asked = recipe(tmp_path, server.endpoint, rows(3))
        built = command("build-multilingual", "--recipe", asked, "--out", tmp_path / "out", env=env)
    assert built.returncode == 0, built.stderr
    (headers,) = server.metadata
    assert headers["authorization"].startswith("Bearer ey")
    secrets = [headers["authorization"].removeprefix("Bearer "), json.loads(keys.read_text())["private_key"][100:160]]
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or not any(secret.encode() in path.read_bytes() for secret in secrets)


@pytest.mark.heavy
def test_credentials_that_expired_are_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = lonely(monkeypatch, tmp_path / "home")
    _, credentials = service_account(tmp_path)
    env |= {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(tmp_path / "roots.pem")}
    # What a login of some weeks ago does: the token cannot be renewed.
    code = """
import sys
import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import RefreshError
from build_multilingual.cli import main

class Expired(Credentials):
    def refresh(self, request):
        raise RefreshError("invalid_grant: Token has been expired or revoked.")

google.auth.default = lambda **_: (Expired(), None)
sys.argv = ["build-multilingual", *sys.argv[1:]]
main()
"""
    with serve(by_words, credentials=credentials) as server:
        asked = recipe(tmp_path, server.endpoint, rows(1), connection={"retry_seconds": 0.3})
        result = command("python", "-c", code, "--recipe", asked, "--out", tmp_path / "out", env=env)
    assert server.requests == []
    fails(result)
    assert result.stderr == (
        "Error: Google Cloud's credentials cannot be used (invalid_grant: Token has been expired or revoked); run "
        f"`gcloud auth application-default login` again. 0 of 3 texts in spa_Latn are recorded{GO_ON}\n"
    )


# ---- Money


def test_the_spending_ceiling_stops_the_build_and_a_higher_one_goes_on(run: Run, tmp_path: Path) -> None:
    pairs = rows(4, 1350)
    with serve(by_words) as server:
        words = ["--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out", "--price", "20"]
        status, said = run(*words, "--max-cost", "1.2")
        assert status == 2
        spent = sum(map(len, server.texts())) * 20 / 1e6
        assert re.fullmatch(
            rf"Error: The spending ceiling of \$1\.20 is reached: \${spent:.4f} is spent and the next call could cost "
            rf"\$0\.\d{{4}}; raise `max_cost` to go on. 6 of 12 texts in spa_Latn are recorded{re.escape(GO_ON)}\n",
            said,
        ), said
        assert spent <= 1.2
        assert run(*words, "--max-cost", "5")[0] == 0
    assert Counter(server.texts()) == Counter(texts_of(pairs))


def test_a_ceiling_that_covers_all_texts_lets_them_through(run: Run, tmp_path: Path) -> None:
    pairs = rows(10, 12)
    cost = sum(map(len, texts_of(pairs))) * 20 / 1e6
    with serve(by_words) as server:
        asked = recipe(tmp_path, server.endpoint, pairs, connection={"price": 20.0, "max_cost": cost * 1.01})
        status, said = run("--recipe", asked, "--out", tmp_path / "out")
    assert status == 0, said


def test_a_ceiling_without_a_price_is_refused(run: Run, tmp_path: Path) -> None:
    status, said = run("--recipe", recipe(tmp_path, "", rows(1)), "--max-cost", "1", "--out", tmp_path / "out")
    assert status == 2
    assert "a `max_cost` needs a `price` under [connection] (or --price) to be reckoned by" in said


# ---- Killed


def test_a_killed_build_goes_on_and_asks_for_no_recorded_text_again(run: Run, tmp_path: Path) -> None:
    pairs, messages = rows(16, 1350), 9  # 48 texts, three a message
    answers: dict[str, str] = {}

    def slow(texts: Sequence[str], source: str, target: str) -> list[str]:
        time.sleep(0.1)
        answers.update(zip(texts, by_words(texts, source, target), strict=True))
        return [answers[text] for text in texts]

    with serve(slow) as server:
        asked = recipe(tmp_path, server.endpoint, pairs, connection={"concurrency": 2})
        words = [script("build-multilingual"), "--recipe", str(asked), "--out", str(tmp_path / "out")]
        with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as build_:
            until = time.monotonic() + 60
            while len(server.answered) < messages:
                assert time.monotonic() < until
                assert build_.poll() is None
                time.sleep(0.005)
            build_.send_signal(signal.SIGKILL)
        time.sleep(0.3)  # what was on its way has been answered
        assert not (tmp_path / "out").exists()
        recorded = recorded_texts(tmp_path / "out.work/ledger.sqlite")
        assert len(recorded) >= 3 * (messages - 2), "all but what was in flight"
        before = len(server.texts())
        assert before < 48
        assert run("--recipe", asked, "--out", tmp_path / "out")[0] == 0
        again = server.texts()[before:]
    assert not [text for text in again if answers[text] in recorded]
    assert len(again) == 48 - len(recorded)
    assert set(server.texts()) == set(texts_of(pairs))
    assert sum(count - 1 for count in Counter(server.texts()).values()) <= 2 * 3, "only what was in flight is repeated"
    assert released(tmp_path / "out").height == 16


def recorded_texts(ledger: Path) -> set[str]:
    """The answers in a working ledger, none where it was not yet made."""
    if not ledger.exists():
        return set()
    with closing(sqlite3.connect(ledger)) as database:
        return {text for (text,) in database.execute("SELECT text FROM calls")}


# ---- In Python


def test_the_same_from_python(tmp_path: Path) -> None:
    with serve(by_words) as server:
        path = recipe(tmp_path, server.endpoint, rows(5))
        made = build(read_recipe(MultilingualRecipe, path), tmp_path / "out")
    assert made.new_calls == 15
    assert made.figures["rows"] == {"spa_Latn": 5}
    assert made.manifest.ledger.calls == 15


def test_what_is_asked_names_all_that_changes_the_answer() -> None:
    body = translator(TranslatorTable(name="google"), ConnectionTable()).body("Good morning.", LANGUAGES["zho_Hant"])
    assert body == {"text": "Good morning.", "source": "en", "target": "zh-TW", "mime_type": "text/plain"}
    glossed = translator(TranslatorTable(name="google", glossary="g"), ConnectionTable(project="x", location="y"))
    assert glossed.body("Good morning.", LANGUAGES["zho_Hant"]) == body | {"glossary": "g"}
