"""NLLB through transformers, with a tiny model of its shape that has learnt twelve sentences by heart."""

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_multilingual.errors import TranslatorError, UnsupportedLanguage
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import nllb, translator
from pluralbench_calls import Answer, Request, read_ledger
from pluralbench_schemas import LANGUAGES
from session_folder import made_once
from written_tables import write

Run = Callable[..., tuple[int, str]]

# English, Spanish, German.
KNOWN = [
    ("The dog sleeps in the warm kitchen.", "El perro duerme en la cocina cálida.", "Der Hund schläft in der Küche."),
    ("We drink coffee every morning.", "Bebemos café todas las mañanas.", "Wir trinken jeden Morgen Kaffee."),
    ("The train leaves the city at noon.", "El tren sale de la ciudad al mediodía.", "Der Zug fährt mittags ab."),
    ("My sister reads a long book.", "Mi hermana lee un libro largo.", "Meine Schwester liest ein langes Buch."),
    ("Please close the window tonight.", "Por favor, cierra la ventana esta noche.", "Bitte schließ das Fenster."),
    ("The children play near the river.", "Los niños juegan cerca del río.", "Die Kinder spielen am Fluss."),
    ("He sells bread and fresh fruit.", "Vende pan y fruta fresca.", "Er verkauft Brot und frisches Obst."),
    ("Our teacher speaks very slowly.", "Nuestra maestra habla muy despacio.", "Unsere Lehrerin spricht langsam."),
    ("It rains a lot in November.", "Llueve mucho en noviembre.", "Im November regnet es viel."),
    ("They live in a small village.", "Viven en un pueblo pequeño.", "Sie wohnen in einem kleinen Dorf."),
    ("The garden is full of flowers.", "El jardín está lleno de flores.", "Der Garten ist voller Blumen."),
    ("I write a letter to my friend.", "Escribo una carta a mi amigo.", "Ich schreibe einen Brief."),
]
EXTRA = ("torch", "transformers")
SPANISH, GERMAN = ({row[0]: row[number] for row in KNOWN} for number in (1, 2))
E = [row[0] for row in KNOWN]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    torch, _ = (pytest.importorskip(name, reason="the extra nllb is not installed") for name in EXTRA)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tokenizer_of(sentences: Sequence[str]) -> Any:
    """A tokenizer of NLLB's own class, made from a few sentences."""
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers
    from transformers import NllbTokenizer

    trained = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))  # noqa: S106 - not a password
    trained.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trained.train_from_iterator(
        sentences, trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    )
    model = json.loads(trained.to_str())["model"]
    return NllbTokenizer(
        vocab=model["vocab"],
        merges=[tuple(merge) for merge in model["merges"]],  # type: ignore[misc]
        additional_special_tokens=["eng_Latn", "spa_Latn", "deu_Latn"],
        src_lang="eng_Latn",
    )


@pytest.fixture(scope="module")
def folder() -> Path:
    """A model that translates `KNOWN`, in the files that NLLB comes in."""
    return made_once("nllb", save_model)


def save_model(path: Path) -> None:
    import torch
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    torch.manual_seed(0)
    tokenizer = tokenizer_of([text for row in KNOWN for text in row])
    config = M2M100Config(
        vocab_size=len(tokenizer),
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        decoder_start_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )
    network = M2M100ForConditionalGeneration(config)
    inputs = tokenizer([*E, *E], return_tensors="pt", padding=True)
    wanted = [
        [
            tokenizer.convert_tokens_to_ids(code),
            *tokenizer(known[text], add_special_tokens=False)["input_ids"],
            tokenizer.eos_token_id,
        ]
        for code, known in (("spa_Latn", SPANISH), ("deu_Latn", GERMAN))
        for text in E
    ]
    longest = max(map(len, wanted))
    labels = torch.tensor([ids + [-100] * (longest - len(ids)) for ids in wanted])
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(400):
        loss = network(**inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 0.076:  # it cannot know which of the two languages comes first
            break
    network.save_pretrained(path)
    tokenizer.save_pretrained(path)


def loaded(folder: Path) -> nllb.Nllb:
    """The translator with its model in memory."""
    made = translator(TranslatorTable(name="nllb", model=str(folder)), ConnectionTable())
    assert isinstance(made, nllb.Nllb)

    async def enter() -> None:
        async with made:
            pass

    asyncio.run(enter())
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> nllb.Nllb:
    return loaded(folder)


def ask(who: nllb.Nllb, texts: Sequence[str], code: str = "spa_Latn") -> list[Answer]:
    requests = [Request("translation", who.provider, who.model, who.body(text, LANGUAGES[code])) for text in texts]

    async def asked() -> list[Answer]:
        return [answer async for part in who.send_packed(requests) for answer in part]

    return asyncio.run(asked())


def counted(monkeypatch: pytest.MonkeyPatch, who: nllb.Nllb) -> list[list[str]]:
    """The batches that reach the model from now on."""
    batches: list[list[str]] = []
    generate = who._generate

    def listed(batch: Sequence[str], token: int) -> list[tuple[str, bool]]:
        batches.append(list(batch))
        return generate(batch, token)

    monkeypatch.setattr(who, "_generate", listed)
    return batches


def test_lines_empty_lines_and_blanks_between_sentences_are_kept(model: nllb.Nllb) -> None:
    text = f"{E[0]} {E[1]}\n\n\n  {E[2]}\n{E[3]}  {E[4]}\r\n\t{E[5]}\n"
    (answer,) = ask(model, [text])
    wanted = text
    for english, spanish in SPANISH.items():
        wanted = wanted.replace(english, spanish)
    assert answer.text == wanted
    assert answer.outcome == "answer"


def test_sentences_of_all_texts_share_batches_and_each_is_translated_once(
    model: nllb.Nllb, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = counted(monkeypatch, model)
    others = [f"The dog reads {number} letters." for number in range(8)]
    answers = ask(model, [" ".join(E), "\n".join(E), *others, E[7]])
    assert [len(batch) for batch in batches] == [nllb.BATCH_SIZE, 4]
    sent = [sentence for batch in batches for sentence in batch]
    assert sorted(sent) == sorted({*E, *others})
    assert sorted(sent, key=len, reverse=True) == sent, "longest first, so that a batch holds texts of about one length"
    assert answers[0].text == " ".join(SPANISH.values())
    assert answers[1].text == "\n".join(SPANISH.values())
    assert answers[-1].text == SPANISH[E[7]]


def test_a_batch_changes_no_translation(model: nllb.Nllb) -> None:
    texts = [*E, "The river sleeps.", "A long letter to the children in the village near the city at noon in November."]
    together = ask(model, texts)
    assert [answer.text for answer in together] == [ask(model, [text])[0].text for text in texts]


def test_a_language_that_the_model_does_not_know(model: nllb.Nllb) -> None:
    with pytest.raises(UnsupportedLanguage) as caught:
        ask(model, E, "fra_Latn")
    assert str(caught.value) == f"The translation model {model._location} does not support fra_Latn."


def test_a_generation_without_an_end_is_cut_off(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "endless"
    shutil.copytree(folder, endless)
    settings = json.loads((endless / "generation_config.json").read_text(encoding="utf-8"))
    (endless / "generation_config.json").write_text(json.dumps(settings | {"suppress_tokens": [2]}), encoding="utf-8")
    monkeypatch.setattr(nllb, "MAX_TOKENS", 40)
    answers = ask(loaded(endless), [E[0], f"{E[1]}\n{E[2]}", ""])
    assert [answer.outcome for answer in answers] == ["length", "length", "empty"]
    assert answers[0].text


def test_a_sentence_over_the_limit_is_halved(model: nllb.Nllb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nllb, "MAX_TOKENS", 32)
    batches = counted(monkeypatch, model)
    long = " and ".join(sentence.rstrip(".") for sentence in E)  # without an end inside
    (answer,) = ask(model, [f"{E[0]}\n{long}\n{E[1]}"])
    sent = {sentence for batch in batches for sentence in batch}
    assert {E[0], E[1]} <= sent
    assert all(len(model._tokenizer(sentence)["input_ids"]) <= 32 for sentence in sent)
    assert sum(len(sentence.split()) for sentence in sent - {E[0], E[1]}) == len(long.split())
    lines = answer.text.split("\n")
    assert (lines[0], lines[2], len(lines)) == (SPANISH[E[0]], SPANISH[E[1]], 3)


def pairs(folder: Path) -> Path:
    code = {"chosen": "def add(a, b):\n    return a + b", "rejected": "def add(a, b):\n    return a - b"}
    rows = [
        {"id": 1, "prompt": E[0], "chosen": f"{E[1]} {E[2]}\n\n{E[3]}", "rejected": E[4], "subset": "chat"},
        {"id": 2, "prompt": f"{E[5]}\n{E[6]}", **code, "subset": "hep-python"},
    ]
    return write(folder / "pairs.jsonl", rows)


def test_a_build_and_its_replay(run: Run, folder: Path, tmp_path: Path) -> None:
    words = ["--source", pairs(tmp_path), "--translator", f"nllb:{folder}", "--language", "spa_Latn", "--language"]
    status, output = run(*words, "deu_Latn", "--out", tmp_path / "out")
    assert status == 0, output
    made = pl.read_parquet(tmp_path / "out/data/spa_Latn/test.parquet")
    assert made.select("prompt", "chosen", "rejected").rows() == [
        (SPANISH[E[0]], f"{SPANISH[E[1]]} {SPANISH[E[2]]}\n\n{SPANISH[E[3]]}", SPANISH[E[4]]),
        (f"{SPANISH[E[5]]}\n{SPANISH[E[6]]}", "def add(a, b):\n    return a + b", "def add(a, b):\n    return a - b"),
    ]
    assert set(made["translator"]) == {folder.name}
    german = pl.read_parquet(tmp_path / "out/data/deu_Latn/test.parquet")
    assert german["prompt"].to_list() == [GERMAN[E[0]], f"{GERMAN[E[5]]}\n{GERMAN[E[6]]}"]
    ledger = read_ledger(tmp_path / "out/provenance/ledger.parquet")
    assert set(ledger["provider"]) == {"transformers"}
    assert ledger.height == 8, "no call for an answer that is code"
    # A replay loads nothing: the model of this name is gone.
    folder.rename(folder.with_name("moved"))
    try:
        status, output = run(*words, "deu_Latn", "--out", tmp_path / "again", "--replay", tmp_path / "out")
        assert status == 0, output
    finally:
        folder.with_name("moved").rename(folder)


@pytest.mark.parametrize("absent", EXTRA)
def test_the_extra_is_not_installed(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    words = ["--source", pairs(tmp_path), "--translator", f"nllb:{folder}", "--language", "spa_Latn"]
    assert run(*words, "--out", tmp_path / "out") == (
        2,
        "Error: NLLB needs an extra: `uv sync --inexact --package build-multilingual --extra nllb`.\n",
    )


@pytest.mark.parametrize(
    ("file", "change"),
    [
        pytest.param("model.safetensors", lambda content: content[: len(content) // 2], id="half of the weights"),
        pytest.param("config.json", lambda _: b'{"model_type": "bert"}', id="another kind of model"),
    ],
)
def test_a_model_that_cannot_be_loaded(
    folder: Path, tmp_path: Path, file: str, change: Callable[[bytes], bytes] | None
) -> None:
    damaged = shutil.copytree(folder, tmp_path / "damaged")
    content = (damaged / file).read_bytes()
    (damaged / file).unlink()
    if change is not None:
        (damaged / file).write_bytes(change(content))
    with pytest.raises(TranslatorError) as caught:
        loaded(damaged)
    message = str(caught.value)
    assert message.startswith(f"The translation model {damaged} cannot be loaded: ")
    assert message.endswith(".")
    assert "\n" not in message
