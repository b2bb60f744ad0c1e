"""Google Cloud Translation through its own client: what is sent, and what comes back."""

import unicodedata
from itertools import chain
from pathlib import Path

import polars as pl
from build_multilingual.masking import FINDERS
from google_builds import PROJECT, Run, built, calls, prose, recipe, record, released, rows, texts_of
from pluralbench_schemas import LANGUAGES
from translation_server import PROJECT_NUMBER, by_words, least_messages, serve

# ---- What is sent and what comes back


def test_texts_share_messages_and_each_translation_finds_its_place(run: Run, tmp_path: Path) -> None:
    pairs = rows(300, 40)
    with serve(by_words) as server:
        out = built(run, tmp_path, server.endpoint, pairs)
    sent = server.texts()
    assert sorted(sent) == sorted(texts_of(pairs)), "each text once, as it is"
    assert len(server.requests) == least_messages(sent) == 9
    for request, headers in zip(server.requests, server.metadata, strict=True):
        assert request.parent == f"projects/{PROJECT}/locations/global"
        assert request.model == f"projects/{PROJECT}/locations/global/models/general/nmt"
        languages = request.source_language_code, request.target_language_code
        assert (request.mime_type, languages) == ("text/plain", ("en", "es"))
        assert not request.glossary_config.glossary
        assert headers["x-goog-request-params"] == f"parent=projects/{PROJECT}/locations/global"
    made = released(out)
    assert made["id"].to_list() == list(range(300))
    for side in ("prompt", "chosen", "rejected"):
        assert made[side].to_list() == by_words([pair[side] for pair in pairs], "en", "es")
    recorded = calls(out)
    assert recorded.height == 900
    for side in ("prompt", "chosen", "rejected"):
        texts = recorded.join(made.select(pl.col(f"{side}_calls").list.first().alias("key"), side), on="key")
        assert texts["text"].to_list() == texts[side].to_list()
    assert recorded["prompt_tokens"].sum() == sum(map(len, sent)), "characters are what is billed"


PROTECTED = {
    "fenced code": "```python\nprint('good morning')  # a comment\n```",
    "inline code": "`the_table.open(window)`",
    "LaTeX": r"$x^2 + \frac{a}{b}$",
    "URL": "https://example.org/the/old/garden?page=2#top",
    "e-mail address": "the.teacher@school.example",
    "placeholder": "{user_name}",
    "number": "1,250.75",
}


def test_what_is_protected_is_never_sent_and_comes_back_as_it_was(run: Run, tmp_path: Path) -> None:
    assert list(PROTECTED) == list(dict.fromkeys(kind for kind, _ in FINDERS))
    ends = {kind: ("\n" if kind == "fenced code" else " ") for kind in PROTECTED}
    texts = [f"{prose('before')}{ends[kind]}{span}{ends[kind]}{prose('after')}" for kind, span in PROTECTED.items()]
    pairs = [row | {"prompt": text} for row, text in zip(rows(len(texts)), texts, strict=True)]
    with serve(by_words) as server:
        out = built(run, tmp_path, server.endpoint, pairs)
    assert not [sent for sent in server.texts() if any(span in sent for span in PROTECTED.values())]
    assert record(out, "set_aside").is_empty()
    before, after = by_words([prose("before"), prose("after")], "en", "es")
    wanted = [f"{before}{ends[kind]}{span}{ends[kind]}{after}" for kind, span in PROTECTED.items()]
    assert released(out)["prompt"].to_list() == wanted


# ---- Identity: model, glossary, replay


def test_a_model_is_named_without_the_project(run: Run, tmp_path: Path) -> None:
    with serve(by_words) as server:
        words = ("--translator", "google:TL123", "--location", "us-central1")
        out = built(run, tmp_path, server.endpoint, rows(3), *words)
    (request,) = server.requests
    assert request.model == f"projects/{PROJECT}/locations/us-central1/models/TL123"
    assert set(released(out)["translator"]) == set(calls(out)["model"]) == {"TL123"}
    for path in out.rglob("*"):
        # The recipe, which is in the manifest too, says how the build was made, connection and all.
        if path.is_file() and path.name not in {"recipe.toml", "manifest.json"}:
            assert PROJECT.encode() not in path.read_bytes(), path
            assert PROJECT_NUMBER.encode() not in path.read_bytes(), path


GLOSSARY = f"projects/{PROJECT}/locations/us-central1/glossaries/houses"


def test_a_glossary_is_sent_and_what_it_made_is_taken(run: Run, tmp_path: Path) -> None:
    with serve(by_words) as server:
        words = ("--location", "us-central1", "--glossary", GLOSSARY)
        made = released(built(run, tmp_path, server.endpoint, rows(12), *words))
    (request,) = server.requests
    assert request.glossary_config.glossary == GLOSSARY
    assert request.parent == f"projects/{PROJECT}/locations/us-central1"
    plain = [text.replace("casa", "CASA") for text in by_words([row["prompt"] for row in rows(12)], "en", "es")]
    assert made["prompt"].to_list() == plain
    assert any("CASA" in text for text in plain)


def test_a_glossary_is_part_of_what_is_asked(run: Run, tmp_path: Path) -> None:
    with serve(by_words) as server:
        asked = recipe(tmp_path, server.endpoint, rows(2))
        assert run("--recipe", asked, "--out", tmp_path / "plain")[0] == 0
        words = ["--recipe", asked, "--glossary", GLOSSARY, "--out", tmp_path / "glossed"]
        status, output = run(*words, "--replay", tmp_path / "plain")
        assert status == 2
        assert "The ledger has no answer for the prompt of 0 in spa_Latn (model general/nmt at" in output
        assert "and a replay sends nothing. 0 of 6 texts in spa_Latn are recorded.\n" in output
        assert run(*words, "--reuse", tmp_path / "plain", "--fresh")[0] == 0
        assert len(server.requests) == 2, "nothing of the plain translations serves"
        assert run("--recipe", asked, "--glossary", "other", "--out", tmp_path / "out", "--reuse", words[-1])[0] == 0
        assert len(server.requests) == 3


STRANGE = {
    "arb_Arab": "\u200fالقِطَّةُ «نائِمَةٌ» في الحَديقَةِ، و\u2067البَيتُ\u2069 كَبيرٌ جِدًّا وَجَميلٌ أَيضًا.\u200f",
    "heb_Hebr": "\u200fהַחָתוּל יָשֵׁן בַּגִּנָּה, וְהַבַּיִת גָּדוֹל מְאֹד וְיָפֶה גַּם כֵּן; צה״ל וגם ג׳ירף.\u200f",
    "hin_Deva": "बिल्ली बगीचे में सो रही है, और क\u094d\u200dष घर बहुत बड़ा है; ज़िंदगी में फ़र्क़ पड़ता है।",
    "vie_Latn": unicodedata.normalize("NFD", "Con mèo đang ngủ trong vườn, và ngôi nhà rất lớn, đẹp lắm, thật vậy."),
    "ces_Latn": unicodedata.normalize("NFD", "Příliš žluťoučký kůň úpěl ďábelské ódy, a kočka spí na zahradě."),
    "deu_Latn": "Die Katze schläft im Garten, und das Haus ist sehr groß\u00a0– 👩\u200d👩\u200d👧 Schön\u00adheit.",
}


def test_right_to_left_and_combining_text_comes_back_byte_for_byte(run: Run, tmp_path: Path) -> None:
    texts = {"prompt": prose("p", 9), "chosen": prose("c", 18), "rejected": prose("r", 27)}
    pair = {"id": 7, "subset": "s", **texts, "rejected": texts["rejected"] + " 15%"}
    sent = [texts["prompt"], texts["chosen"], texts["rejected"] + " [0]"]
    made = {code: [text, f"{text}\n\n{text}", f"- {text}\n- {text}\n\n[0] {text}"] for code, text in STRANGE.items()}
    known = {LANGUAGES[code].google: dict(zip(sent, translations, strict=True)) for code, translations in made.items()}
    with serve(lambda texts, _, target: [known[target][text] for text in texts]) as server:
        out = built(run, tmp_path, server.endpoint, [pair], languages=list(STRANGE))
    for code, translations in made.items():
        (row,) = released(out, code).iter_rows(named=True)
        wanted = [*translations[:2], translations[2].replace("[0]", "15%")]
        assert [row[side].encode() for side in texts] == [text.encode() for text in wanted]
    assert sorted(calls(out)["text"]) == sorted(chain(*made.values())), "recorded as it came"
