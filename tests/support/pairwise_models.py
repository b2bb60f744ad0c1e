"""Tiny models that only compare two responses, and the probabilities by their published ways, one pair at a time."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from reward_models import BOS, EOS, change_config, load_plainly, make_tokenizer, save_language_model
from safetensors.torch import load_file, save_file
from tokenizers import processors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pluralbench_rewards import Group

PREFIXES = ("<|source|>", "<|candidate1|>", "<|candidate2|>")
PREFIX_KEYS = ("source_prefix_id", "cand1_prefix_id", "cand2_prefix_id")
WIDTH = 64
DEBERTA: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 8,
    "max_position_embeddings": 16,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "type_vocab_size": 0,
    "initializer_range": 0.3,
    "pad_token_id": 2,
}


def deberta_tokenizer() -> Any:
    """A tokenizer that puts special tokens around a text, and has PairRM's prefixes."""
    tokenizer = make_tokenizer(template=None)
    tokenizer.add_special_tokens({"additional_special_tokens": [*PREFIXES]})
    ends = [(token, tokenizer.convert_tokens_to_ids(token)) for token in (BOS, EOS)]
    made = processors.TemplateProcessing(single=f"{BOS} $A {EOS}", special_tokens=ends)
    tokenizer.backend_tokenizer.post_processor = made
    return tokenizer


def save_pairrm(folder: Path, *, dtype: str = "float32", tasks: int = 2, **settings: Any) -> str:
    """Save a model as PairRM is saved: body and head by its names; the folder as text."""
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    tokenizer, auto = deberta_tokenizer(), cast("Any", AutoModel)
    ids = {key: tokenizer.convert_tokens_to_ids(prefix) for key, prefix in zip(PREFIX_KEYS, PREFIXES, strict=True)}
    sizes = DEBERTA | {"vocab_size": len(tokenizer), "n_tasks": tasks, "drop_out": 0.05}
    config = AutoConfig.for_model("deberta-v2", **(sizes | ids | settings))
    config.architectures = ["DebertaV2PairRM"]
    body = auto.from_config(config)
    config.save_pretrained(folder)
    change_config(str(folder), dtype=dtype, architectures=["DebertaV2PairRM"])
    tokenizer.save_pretrained(folder)
    names = {"1.weight": (WIDTH, 2 * WIDTH), "1.bias": (WIDTH,), "4.weight": (tasks, WIDTH), "4.bias": (tasks,)}
    head = {f"head_layer.{name}": 0.3 * torch.randn(shape) for name, shape in names.items()}
    tensors = {f"pretrained_model.{name}": tensor for name, tensor in body.state_dict().items()} | head
    kind = getattr(torch, dtype)
    saved = {name: tensor.to(kind).contiguous() for name, tensor in tensors.items()}
    save_file(saved, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def pairrm_logits(folder: str, sources: Sequence[tuple[str, str, str]], dtype: str = "float32") -> list[float]:
    """Logits of PairRM that the first response is better, one input at a time."""
    from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

    kind = getattr(torch, dtype)
    tensors = {name: tensor.to(kind) for name, tensor in load_file(Path(folder) / "model.safetensors").items()}
    auto = cast("Any", AutoModel)
    body = auto.from_config(AutoConfig.from_pretrained(folder)).to(kind).eval()
    body.load_state_dict({n.removeprefix("pretrained_model."): t for n, t in tensors.items() if "head_layer" not in n})
    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(folder)
    logits = []
    for texts in sources:
        ids: list[int] = []
        for prefix, text in zip(PREFIXES, texts, strict=True):
            ids += tokenizer.encode(prefix + text)
        with torch.inference_mode():
            states = body(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0]
        source, left, right = (states[ids.index(tokenizer.convert_tokens_to_ids(prefix))] for prefix in PREFIXES)
        scores = []
        for candidate in (left, right):
            inner = tensors["head_layer.1.weight"] @ torch.cat([source, candidate]) + tensors["head_layer.1.bias"]
            scores.append(tensors["head_layer.4.weight"] @ torch.tanh(inner) + tensors["head_layer.4.bias"])
        logits.append(float((scores[0] - scores[1]).float().mean()))
    return logits


def save_general_preference(
    folder: Path, *, size: int = 6, dtype: str = "float32", with_prompt: bool = True, tokenizer: Any = None
) -> str:
    """Save a language model with the heads of a general preference model; the folder as text."""
    save_language_model(folder, tokenizer=tokenizer)
    change_config(str(folder), dtype=dtype)
    draw, kind = torch.Generator().manual_seed(5), getattr(torch, dtype)
    heads = {"value_head.weight": 0.15 * torch.randn(size, WIDTH, generator=draw)}
    if with_prompt:
        heads["prompt_head.weight"] = 0.8 * torch.randn(size // 2, WIDTH, generator=draw)
    tensors = load_file(folder / "model.safetensors") | heads
    saved = {name: tensor.to(kind) for name, tensor in tensors.items()}
    save_file(saved, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


@cache
def plain_model(folder: str, dtype: str) -> tuple[Any, Any]:
    """A language model and its tokenizer as the library loads them, once."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    return load_plainly(AutoModelForCausalLM, folder, dtype), PreTrainedTokenizerFast.from_pretrained(folder)


def general_preference(folder: str, group: Group, one: int, other: int, scale: str, dtype: str = "float32") -> float:
    """The preference s(one, other) by the matrix of the published code, in a pass for each conversation."""
    model, tokenizer = plain_model(folder, dtype)
    tensors = {n: t.to(getattr(torch, dtype)) for n, t in load_file(Path(folder) / "model.safetensors").items()}
    messages = [dict(message) for message in group.prompt]
    prompt = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True)["input_ids"]
    vectors, at_prompt = [], []
    for place in (one, other):
        whole = [*messages, {"role": "assistant", "content": group.responses[place]}]
        ids = list(tokenizer.apply_chat_template(whole, tokenize=True, return_dict=True)["input_ids"])
        ids[-1] = tokenizer.eos_token_id
        with torch.inference_mode():
            states = model.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        vector = (tensors["value_head.weight"] @ states[-1]).float()
        vectors.append(vector / vector.norm() if scale == "normalized" else vector)
        at_prompt.append(states[len(prompt) - 1])
    size = len(vectors[0])
    blocks = torch.ones(size // 2)
    if "prompt_head.weight" in tensors:
        values = (tensors["prompt_head.weight"] @ at_prompt[0]).float()
        blocks = torch.softmax(values / math.sqrt(WIDTH), 0) * (size // 2) if scale == "scaled" else values.softmax(0)
    matrix = torch.zeros(size, size)
    for block, value in enumerate(blocks.tolist()):
        matrix[2 * block, 2 * block + 1], matrix[2 * block + 1, 2 * block] = -value, value
    return float(vectors[0] @ matrix.T @ vectors[1])


def pair_preference(folder: str, group: Group, one: int, other: int, dtype: str = "float32") -> float:
    """Probability of the token A by the whole logits, with the published template of turns, for one pair."""
    model, tokenizer = plain_model(folder, dtype)
    chat = tokenizer.chat_template
    turn = "\n\n<turn> {role}\n {{{{ message['content'] }}}}"
    user, assistant = (turn.format(role=role) for role in ("user", "assistant"))
    tokenizer.chat_template = (
        "\n{% for message in messages %}{% if loop.index0 % 2 == 0 %}"
        + user
        + "{% else %}"
        + assistant
        + "{% endif %}{% endfor %}\n\n\n"
    )
    context = tokenizer.apply_chat_template([dict(message) for message in group.prompt], tokenize=False)
    tokenizer.chat_template = chat
    parts = {"CONTEXT": context, "RESPONSE A": group.responses[one], "RESPONSE B": group.responses[other]}
    content = " ".join(f"[{name}] {text}" for name, text in parts.items()) + " \n"
    asked = [{"role": "user", "content": content}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True).replace(BOS, "")
    ids = tokenizer.encode(text, add_special_tokens=False)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0, -1].double()
    letters = [tokenizer.encode(letter, add_special_tokens=False) for letter in "AB"]
    assert [len(letter) for letter in letters] == [1, 1]
    a, b = (math.exp(float(logits[letter[0]])) for letter in letters)
    return a / (a + b)
