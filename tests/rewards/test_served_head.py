"""A classifier's head, read of its weights without torch, and what llama.cpp's replies must be."""

import json
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pluralbench_rewards import RewardsError
from pluralbench_rewards.served import About, Conversation, ReplyError
from pluralbench_rewards.served.head import read_head
from pluralbench_rewards.served.llamacpp import about, read
from safetensors.numpy import save_file

STATES = [[1.0, -2.0, 0.5], [0.25, 0.0, -8.0]]
ABOUT = About("b1", ("tiny",))
ASKED = [Conversation([5, 6], "", range(0)), Conversation([7], "", range(0))]


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_head_of_any_precision_in_any_file_gives_the_same_logits(kind: Any, tmp_path: Path) -> None:
    weights = np.array([[0.5, -1.25, 3.0]]).astype(kind)
    other = {"model.norm.weight": np.ones(3, kind)}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    save_file({"score.weight": weights, **other}, whole / "model.safetensors")
    save_file(other, parts / "model-00001-of-00002.safetensors")
    head = {"score.weight": weights, "score.bias": np.array([2.0]).astype(kind)}
    save_file(head, parts / "model-00002-of-00002.safetensors")
    files = dict.fromkeys(head, "model-00002-of-00002.safetensors")
    index = {"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors", **files}}
    (parts / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert read_head(whole).logits(STATES) == [[4.5], [-23.875]]
    assert read_head(parts).logits(STATES) == [[6.5], [-21.875]]
    assert read_head(parts).logits([]) == []


def test_states_of_another_model_have_another_width(tmp_path: Path) -> None:
    save_file({"score.weight": np.ones((1, 4), np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(ReplyError, match=r"^gave a hidden state of 3 numbers where the model's head takes 4, so it "):
        read_head(tmp_path).logits(STATES)


def test_a_model_without_a_linear_head_is_refused(tmp_path: Path) -> None:
    refused = rf"^{tmp_path} holds no reward head of one linear layer \(score\.weight\), which is what can be applied "
    with pytest.raises(RewardsError, match=refused):
        read_head(tmp_path)
    save_file({"score.0.weight": np.ones((1, 4), np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(RewardsError, match=refused):
        read_head(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"<html>not here</html>")
    with pytest.raises(RewardsError, match=rf"^The reward head of {tmp_path} cannot be read: "):
        read_head(tmp_path)


def rows(*states: list[list[float]] | None) -> list[dict[str, object]]:
    return [{"index": place, "embedding": state} for place, state in enumerate(states)]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (rows([[1.0, 2.0]]), "sent 1 results for 2 conversations"),
        (rows([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]), "gave 2 hidden states of one conversation; start it with "),
        (rows([[0.6, 0.8]], [[-1.0, 0.0]]), "divides hidden states by their length, whatever is asked "),
        (rows([[math.nan, 0.8]], [[-1.0, 2.0]]), "gave nan as a score"),
        (rows([[1.0, 2.0]], None), "gave 0 hidden states of one conversation; start it with --embeddings --pooling "),
        ({"error": "busy"}, "sent dict where a list of results belongs"),
    ],
)
def test_a_reply_that_is_not_one_state_for_each_conversation_is_refused(reply: Any, said: str) -> None:
    with pytest.raises(ReplyError, match=f"^{said}"):
        read(reply, ASKED, ABOUT)


def test_states_come_in_the_order_of_their_index() -> None:
    backwards = rows([[1.0, 2.0]], [[3.0, 4.0]])[::-1]
    assert read(backwards, ASKED, ABOUT) == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("pages", [{}, {"/v1/models": {"data": [{"owned_by": "vllm", "id": "m"}]}}, {"/v1/models": []}])
def test_pages_of_others_are_not_llama_cpps(pages: dict[str, Any]) -> None:
    assert about(pages | {"/props": {"default_generation_settings": {"n_ctx": 64}}}) is None
