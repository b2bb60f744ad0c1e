"""Tiny models saved by transformers, written as llama.cpp's files: the trunk of a classifier, without its head."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

ARCHITECTURES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen3": gguf.MODEL_ARCH.QWEN3}
HEADS = ("score.", "lm_head.")


def write_gguf(folder: Path | str, path: Path | str) -> Path:
    """Write the trunk of a model of `reward_models` in float32; the path."""
    folder = Path(folder)
    config, tokenizer = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in ("config.json", "tokenizer.json")
    )
    architecture: str = config["model_type"]
    writer = gguf.GGUFWriter(path, architecture)
    _add_sizes(writer, config)
    _add_tokenizer(writer, tokenizer, config)
    names = gguf.get_tensor_name_map(ARCHITECTURES[architecture], config["num_hidden_layers"])
    for name, weights in load_file(folder / "model.safetensors").items():
        if name.startswith(HEADS):
            continue
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert found, name
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
        rotated = architecture == "llama" and heads
        writer.add_tensor(found, np.ascontiguousarray(_interleaved(weights, config[heads]) if rotated else weights))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Path(path)


def _add_sizes(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    tokens = {place: token for token, place in tokenizer["model"]["vocab"].items()} | special
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokens[place] for place in range(config["vocab_size"])])
    kinds = {True: gguf.TokenType.CONTROL, False: gguf.TokenType.NORMAL}
    writer.add_token_types([kinds[place in special] for place in range(config["vocab_size"])])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])


def _interleaved(weights: np.ndarray, heads: int) -> np.ndarray:
    """Rotated pairs side by side, as llama.cpp wants them of llama, where transformers holds two halves a head."""
    halves = weights.reshape(heads, 2, -1, weights.shape[-1])
    return halves.swapaxes(1, 2).reshape(weights.shape)
