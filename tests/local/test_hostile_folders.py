"""Model folders that would run code, take all memory or tell nothing apart: a sentence before they score."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pluralbench_local import LocalError, load, score
from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template
from pluralbench_local.personal.embedding import EmbeddingStore
from pluralbench_local.served.checking import load_head
from pluralbench_rewards import Group
from pluralbench_runs import regular_files
from reward_models import TEMPLATE, change_config, load_classifier, make_groups, make_tokenizer, save_classifier, user


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_classifier(tmp_path_factory.mktemp("good") / "model"))


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    for path in good.iterdir():
        (tmp_path / "model" / path.name).write_bytes(path.read_bytes())
    return tmp_path / "model"


@pytest.mark.parametrize("architecture", ["llama", "bert"])
def test_a_model_that_would_return_tuples_is_read_by_names(architecture: str, tmp_path: Path) -> None:
    folder, groups = save_classifier(tmp_path / "model", architecture), make_groups(1)[:2]
    scored = score(load_classifier(folder), groups).scores
    change_config(folder, return_dict=False)
    assert score(load_classifier(folder), groups).scores == scored


def piped(name: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    return change


def linked_to_all(folder: Path) -> None:
    """A link back into the folder is followed once, and one to everything is not followed to the end."""
    (folder / "back").symlink_to(".")
    for number in range(12):
        (folder / f"deeper/{number}").mkdir(parents=True)
    (folder / "all").symlink_to("deeper")


def configured(**values: Any) -> Callable[[Path], object]:
    return lambda folder: change_config(str(folder), **values)


def kernel_below(folder: Path) -> None:
    (folder / "modules.json").write_text("[]", encoding="utf-8")  # a sentence encoder
    (folder / "0_Transformer").mkdir()
    (folder / "0_Transformer" / "config.json").write_text('{"text_config": {"attn_implementation": "a/b"}}', "utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(
            (piped(name), rf"{re.escape(name)} is not a regular file; remove it\.")
            for name in ("model.safetensors", "a/b/config.json")
        ),
        (linked_to_all, "has more than 10 folders; give one with the model alone"),
        (configured(num_hidden_layers=1_000_000), "sets `num_hidden_layers` to 1,000,000; the maximum is 2,000"),
        (configured(num_hidden_layers=0), "sets `num_hidden_layers` to 0; a model has at least one"),
        (
            configured(_attn_implementation="kernels-community/flash-attn"),
            r"config\.json names code on the Hub \(`_attn_implementation`: 'kernels-community/flash-attn'\), which",
        ),
        (kernel_below, r"0_Transformer/config\.json names code on the Hub \(`attn_implementation`: 'a/b'\)"),
    ],
)
def test_what_would_hang_grow_or_run_is_not_loaded(
    folder: Path, change: Callable[[Path], object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular_files, "MAX_FOLDERS", 10)
    change(folder)
    with pytest.raises(LocalError, match=said):
        load(str(folder), device="cpu")


def test_a_pipe_in_place_of_weights_that_are_read_alone_is_named(folder: Path) -> None:
    piped("model.safetensors")(folder)
    with pytest.raises(LocalError, match=r"model\.safetensors is not a regular file; remove it\."):
        load_head(LocalModel(name=str(folder)), "http://127.0.0.1:9")
    backbone: Any = None  # is not reached
    with pytest.raises(LocalError, match="it is not a regular file"):
        EmbeddingStore(folder, backbone)


def test_files_that_are_links_into_a_cache_are_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    for path in sorted(folder.iterdir()):
        path.symlink_to(path.rename(tmp_path / "blobs" / path.name))
    assert load(str(folder), device="cpu")


def test_token_ids_beyond_the_embedding_are_named(folder: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["<|new|>"], special_tokens=True)
    tokenizer.save_pretrained(folder)
    model = load(str(folder), device="cpu")
    assert model.score(make_groups(1, number=2)).scores
    with pytest.raises(LocalError, match=r"^The tokenizer makes the token id (\d+), but the model has only \1 "):
        model.score([Group("q", user("Say <|new|>."), ["a", "b"])])


def test_responses_that_render_alike_are_counted_and_refused_where_all_do(folder: Path) -> None:
    model = load_classifier(str(folder))
    begin = "(message['content'] if loop.first else message['content'][:9])"
    tokenizer = make_tokenizer(template=TEMPLATE.replace("message['content']", begin))
    cut = replace(model, template=Template(tokenizer))
    groups = [Group("a", user("q"), ["the same beginning", "the same begging"]), Group("b", user("q"), ["yes", "no"])]
    scored = score(cut, [*groups, Group("c", user("q"), ["one", "one"])])
    assert scored.rendered_identically == 1
    assert scored.scores[0][0] == scored.scores[0][1]
    with pytest.raises(
        LocalError, match=r"^The chat template makes the same tokens of .* in all 1 items; give another one as"
    ):
        score(cut, groups[:1])


@pytest.mark.heavy
def test_a_panic_of_the_tokenizers_library_is_an_error_of_this_model(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    pattern = {"Regex": r"(a+)+$|(\w+\s?)+x$"}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, content["pre_tokenizer"]]}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(LocalError, match="The tokenizer fails on a text"):
        score(load_classifier(str(folder)), [Group("q", user("a" * 40 + "!"), ["words " * 30 + "!"])])
