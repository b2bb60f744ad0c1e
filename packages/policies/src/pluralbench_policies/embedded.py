"""Write the embedded model's weights as a folder for transformers."""

import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock
from pluralbench_calls import embedded_weights
from pluralbench_runs import install_command, make_readable, one_line

from pluralbench_policies.errors import PolicyError

if TYPE_CHECKING:
    import torch
    from transformers import LlamaConfig

PARAMETERS = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Transformers' names of llama.cpp's tensors, without `model` and the layer."""
SIZES = {
    "num_hidden_layers": "block_count",
    "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "head_dim": "rope.dimension_count",
    "vocab_size": "vocab_size",
}
TOKENS = {
    "bos_token_id": "bos_token_id",
    "eos_token_id": "eos_token_id",
    "unk_token_id": "unknown_token_id",
    "pad_token_id": "padding_token_id",
}


def embedded_folder(folder: Path | str, *, dtype: Literal["bfloat16", "float32"] = "bfloat16") -> Path:
    """Write SmolLM2-135M-Instruct, the embedded model, into `folder`, unless it is already there, and return this.

    The weights are those of a 4-bit file (`pluralbench_calls.embedded_weights`). Writing takes a few seconds, and the
    folder appears only when it is complete. The dtype float32 is exact; bfloat16 rounds the weights to 8 bits of
    precision, is half the size, and is twice as fast on processors with bfloat16 arithmetic.

    Raises:
        PolicyError: The extra `local` is not installed, the weights are neither installed nor on a Hub that can be
            reached, or `folder` holds something else.
    """
    folder = Path(folder)
    if folder.exists():
        return _check_folder(folder, dtype)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(folder.with_name(f"{folder.name}.lock")),
        tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary,
    ):
        if not folder.exists():  # another process may have written it meanwhile
            model_folder = Path(temporary) / "model"
            _write_model(model_folder, dtype)
            shutil.move(make_readable(model_folder), folder)
    return _check_folder(folder, dtype)


def _check_folder(folder: Path, dtype: str) -> Path:
    config = folder / "config.json"
    if not config.is_file():
        raise PolicyError(f"{folder} exists and holds no model; choose a folder that does not exist.")
    if f'"dtype": "{dtype}"' not in config.read_text(encoding="utf-8"):
        raise PolicyError(f"{folder} holds a model of another dtype than {dtype}; choose another folder.")
    return folder


def _write_model(folder: Path, dtype: str) -> None:
    """Write what `from_pretrained(..., gguf_file=...)` and `save_pretrained` would write, in a fifth of their time.

    Those parse the file three times, with a slow reader, and initialize the weights at random first.
    """
    try:
        gguf: Any = import_module("gguf")
    except ImportError as error:
        command = install_command("pluralbench-policies", "local")
        raise PolicyError(f"The embedded model cannot be read ({one_line(error, 200)}): {command}.") from None
    weights = embedded_weights(PolicyError)  # importing the libraries takes seconds
    import torch
    from pluralbench_local.models import silence_transformers
    from transformers import LlamaForCausalLM
    from transformers.tokenization_utils_tokenizers import TokenizersBackend

    library: Any = import_module("transformers.integrations.gguf")
    metadata, _ = library.read_gguf_metadata(str(weights))
    header = library.GgufHeader.from_file(str(weights))
    saved, state = library.load_gguf_state_dict(header), {}
    for tensor in header.tensors:
        values = gguf.dequantize(saved[tensor.name].data, gguf.GGMLQuantizationType(tensor.ggml_type))
        state[_parameter(tensor.name)] = _unpermuted(tensor, values, metadata).to(getattr(torch, dtype))
    with silence_transformers():
        with torch.device("meta"):
            model: Any = LlamaForCausalLM(_config(metadata))
        model.load_state_dict(state, strict=False, assign=True)  # the head is the embedding
        model.tie_weights()
        model.config.dtype = getattr(torch, dtype)
        model.save_pretrained(folder)
        TokenizersBackend.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(folder)


def _parameter(name: str) -> str:
    *block, part, suffix = name.split(".")
    layer = f"layers.{block[1]}." if block else ""
    return f"model.{layer}{PARAMETERS[part]}.{suffix}"


def _unpermuted(tensor: Any, values: Any, metadata: dict[str, Any]) -> "torch.Tensor":
    """In transformers' order: rotated dimensions are neighbors in llama.cpp, halves in it."""
    import torch

    weights = torch.from_numpy(values.copy()).reshape(tensor.shape)
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(tensor.name.split(".")[-2])
    if heads is None:
        return weights
    pairs = weights.reshape(metadata[f"llama.attention.{heads}"], -1, 2, tensor.shape[-1])
    return pairs.transpose(1, 2).reshape(tensor.shape)


def _config(metadata: dict[str, Any]) -> "LlamaConfig":
    from transformers import LlamaConfig

    fields = {name: metadata[f"llama.{key}"] for name, key in SIZES.items()}
    fields |= {name: metadata[f"tokenizer.ggml.{key}"] for name, key in TOKENS.items()}
    fields |= {"_model_name_or_path": metadata["general.name"]}
    rope = {"rope_type": "default", "rope_theta": metadata["llama.rope.freq_base"]}
    return LlamaConfig(**fields, rope_parameters=rope, tie_word_embeddings=True)
