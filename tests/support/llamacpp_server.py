"""llama.cpp's real server in this process, with the trunk of a tiny classifier that transformers saved."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import xllamacpp
from safetensors.numpy import load_file


@contextmanager
def serve_states(model: Path, *, pooling: str = "LAST", context: int = 1024, embeddings: bool = True) -> Iterator[str]:
    """Serve a file of `write_gguf` on one thread, exactly as transformers computes; the server's URL."""
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {"tiny"}
    params.n_ctx, params.n_parallel, params.n_batch = context, 1, context
    params.embedding = embeddings
    params.pooling_type = getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{pooling}")
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    server: Any = xllamacpp.Server(params)
    try:
        yield server.listening_address
    finally:
        del server


ARCHITECTURES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen3": gguf.MODEL_ARCH.QWEN3}
HEADS = ("score.", "lm_head.")


def write_gguf(folder: Path | str, path: Path | str, *, generates: bool = False) -> Path:
    """Write a model of `reward_models` in float32; the path.

    generates: with its head and chat template, to write text; else its trunk alone.
    """
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
        if name.startswith(HEADS) and not (generates and name.startswith("lm_head.")):
            continue
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert found, name
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
        rotated = architecture == "llama" and heads
        writer.add_tensor(found, np.ascontiguousarray(_interleaved(weights, config[heads]) if rotated else weights))
    if generates:
        writer.add_chat_template((folder / "chat_template.jinja").read_text(encoding="utf-8"))
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
    writer.add_add_bos_token(False)  # the chat template writes it


def _interleaved(weights: np.ndarray, heads: int) -> np.ndarray:
    """Rotated pairs side by side, as llama.cpp wants them of llama, where transformers holds two halves a head."""
    halves = weights.reshape(heads, 2, -1, weights.shape[-1])
    return halves.swapaxes(1, 2).reshape(weights.shape)
