"""Google Cloud Translation when it fails, costs too much or is killed: what is said, and what is kept."""

import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from build_multilingual.translators.google import MAX_REFUSALS
from commands import environment, refused_with, script
from google_builds import GO_ON, Run, built, calls, prose, recipe, record, released, rows, texts_of
from pluralbench_calls import read_ledger
from translation_server import BAD_LANGUAGE, BAD_TEXT, QUOTA, UNAVAILABLE, Fault, by_words, in_order, refusing, serve

# ---- What fails


def test_a_failing_server_and_a_quota_are_waited_out(run: Run, tmp_path: Path) -> None:
    with serve(by_words, in_order(UNAVAILABLE, QUOTA)) as server:
        built(run, tmp_path, server.endpoint, rows(5))
    assert len(server.requests) == 3
    assert len({tuple(request.contents) for request in server.requests}) == 1, "the same message"
    assert sorted(server.texts()) == sorted(texts_of(rows(5)))


CHECK = "); check the project, its quota and the credentials (`gcloud auth application-default login`)."


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (UNAVAILABLE, f"fails (The service is currently unavailable{CHECK}"),
        (Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "Daily limit."), f"fails (Daily limit{CHECK}"),
        (Fault(grpc.StatusCode.UNAUTHENTICATED, "Expired."), f"fails (Expired{CHECK}"),
        (Fault(grpc.StatusCode.NOT_FOUND, "No model."), f"fails (No model{CHECK}"),
        (BAD_LANGUAGE, "refuses the request (Target language: xx is not supported)."),
    ],
)
def test_what_concerns_every_text_is_said_in_a_sentence(run: Run, tmp_path: Path, fault: Fault, sentence: str) -> None:
    with serve(by_words, lambda *_: fault) as server:
        asked = recipe(tmp_path, server.endpoint, rows(4), connection={"retry_seconds": 0.3})
        result = run("--recipe", asked, "--out", tmp_path / "out")
        refused_with(result, f"Google Cloud Translation {sentence} 0 of 12 texts in spa_Latn are recorded{GO_ON}")
        assert len(server.requests) == 1 or fault.code in {UNAVAILABLE.code, QUOTA.code}
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.work").exists(), "nothing was done, so nothing binds the next run"


def test_a_quota_that_ends_midway_loses_nothing_and_the_same_command_sends_the_rest(run: Run, tmp_path: Path) -> None:
    pairs = rows(4, 1350)  # 12 texts, three a message
    spent = [2]
    with serve(by_words, lambda _, number: QUOTA if number >= spent[0] else None) as server:
        asked = recipe(tmp_path, server.endpoint, pairs, connection={"retry_seconds": 0.3})
        words = ["--recipe", asked, "--out", tmp_path / "out"]
        refused_with(
            run(*words),
            "Google Cloud Translation fails (Quota exceeded for quota metric 'v3 and "
            "v3beta general model characters' and limit 'v3 and v3beta general model characters per minute per "
            f"project' of service 'translate.googleapis.com'{CHECK} 6 of 12 texts in spa_Latn are recorded{GO_ON}",
        )
        done = server.texts()
        assert len(done) == 6
        assert not (tmp_path / "out").exists()
        assert read_ledger(tmp_path / "out.work/ledger.sqlite").height == 6
        spent[0] = 10_000
        status, output = run(*words)
        assert status == 0, output
        assert "12 recorded calls, 6 of them new" in output
    assert Counter(server.texts()) == Counter(texts_of(pairs)), "each text was translated once"
    assert server.texts()[:6] == done


def test_one_refused_text_is_found_and_the_rest_is_kept(run: Run, tmp_path: Path) -> None:
    pairs = rows(30)
    pairs[17]["chosen"] = "This forbidden sentence is one that the translator will never take from anybody."
    bad = pairs[17]["chosen"]
    with serve(by_words, refusing(bad)) as server:
        out = built(run, tmp_path, server.endpoint, pairs)
    assert Counter(server.texts()) == Counter(text for text in texts_of(pairs) if text != bad), "the others once each"
    assert len(server.requests) <= 1 + 2 * 7 + 1, "halves of 90 texts, and the text alone once more"
    assert record(out, "dropped").rows() == [(17, "spa_Latn", "check", "chosen: refused by the translator")]
    assert released(out)["id"].to_list() == [number for number in range(30) if number != 17]
    errors = calls(out).filter(outcome="error")
    assert errors.select("text", "finish_reason", "label").unique().rows() == [
        ("Request contains an invalid argument", "INVALID_ARGUMENT", "the chosen of 17 in spa_Latn")
    ]


def test_a_refused_text_may_pass_sentence_by_sentence(run: Run, tmp_path: Path) -> None:
    pairs = rows(5)
    bad = pairs[3]["prompt"] = f"{prose('one')} {prose('two')}"
    with serve(by_words, refusing(bad)) as server:
        made = released(built(run, tmp_path, server.endpoint, pairs))
    assert made.height == 5
    assert [made["prompt"][3]] == by_words([bad], "en", "es")


def test_when_text_after_text_is_refused_it_is_not_the_texts(run: Run, tmp_path: Path) -> None:
    broken = [True]
    with serve(by_words, lambda *_: BAD_TEXT if broken[0] else None) as server:
        words = ["--recipe", recipe(tmp_path, server.endpoint, rows(40)), "--out", tmp_path / "out"]
        refused_with(
            run(*words),
            "Google Cloud Translation refuses the request (Request contains an invalid argument). "
            f"{MAX_REFUSALS - 1} of 120 texts in spa_Latn are recorded{GO_ON}",
        )
        alone = [request for request in server.requests if len(request.contents) == 1]
        assert len(alone) == MAX_REFUSALS
        assert len(server.requests) < 30
        broken[0] = False
        assert run(*words)[0] == 0
    assert released(tmp_path / "out").height == 40, "those that were refused got through, sentence by sentence"


def test_another_number_of_texts_than_were_sent_is_not_believed(run: Run, tmp_path: Path) -> None:
    pairs = rows(4, 1350)
    short = [1]

    def fewer(texts: Sequence[str], source: str, target: str) -> list[str]:
        translated = by_words(texts, source, target)
        return translated[1:] if len(server.answered) == short[0] else translated

    with serve(fewer) as server:
        words = ["--recipe", recipe(tmp_path, server.endpoint, pairs), "--out", tmp_path / "out"]
        refused_with(
            run(*words),
            "Google Cloud Translation answered 2 texts for 3 sent; none of them "
            f"is recorded. 3 of 12 texts in spa_Latn are recorded{GO_ON}",
        )
        short[0] = 10_000
        assert run(*words)[0] == 0
    made = released(tmp_path / "out")
    for side in ("prompt", "chosen", "rejected"):
        assert made[side].to_list() == by_words([row[side] for row in pairs], "en", "es")


# ---- Killed


def recorded_texts(ledger: Path) -> set[str]:
    """The answers in a working ledger, none where it was not yet made."""
    if not ledger.exists():
        return set()
    with closing(sqlite3.connect(ledger)) as database:
        return {text for (text,) in database.execute("SELECT text FROM calls")}


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
        status, output = run("--recipe", asked, "--out", tmp_path / "out")
    assert status == 2
    assert server.texts(), "paid for"
    assert {*by_words(server.texts(), "en", "es")} <= recorded_texts(tmp_path / "out.work/ledger.sqlite")
    assert "Quota exceeded" in output


@pytest.mark.heavy
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
