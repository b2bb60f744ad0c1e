"""Memory of scoring on GPUs, by arithmetic: held against real shapes, and against the tensors of torch."""

import re
from array import array
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import LocalError, load, models, planning
from pluralbench_local.attention import PACKED, read_only_last_rows, register_attention
from pluralbench_local.network import ReadableNetwork, read_packed
from pluralbench_local.packing import Tokens, pack
from pluralbench_local.planning import check_memory, largest_fitting, needs_of
from reward_models import Folders
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, Gemma2Config, LlamaConfig

GB = 10**9
HEAD: dict[str, Any] = {"num_labels": 1, "pad_token_id": 0}

SIZES: dict[str, Any] = {
    "Llama-3.2-1B": dict(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
        head_dim=64, vocab_size=128256, tie_word_embeddings=True, **HEAD,
    ),
    "Llama-3.1-8B": dict(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
        vocab_size=128256, **HEAD,
    ),
    "Gemma-2-27B": dict(
        hidden_size=4608, intermediate_size=36864, num_hidden_layers=46, num_attention_heads=32, num_key_value_heads=16,
        head_dim=128, vocab_size=256000, query_pre_attn_scalar=144, sliding_window=4096, **HEAD,
    ),
    "Llama-3.1-70B": dict(
        hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8,
        vocab_size=128256, **HEAD,
    ),
}  # fmt: skip
configs: Any = {name: Gemma2Config if "Gemma" in name else LlamaConfig for name in SIZES}
SHAPES = {name: configs[name](**sizes) for name, sizes in SIZES.items()}

CARDS = (24, 40, 80, 141)


def parameters(config: Any, kind: Any = None) -> tuple[int, int]:
    """All parameters of a classifier, and those of the matrices of its layers."""
    with torch.device("meta"):
        model = (kind or AutoModelForSequenceClassification).from_config(config)
    named = list(model.named_parameters())
    return sum(p.numel() for _, p in named), sum(p.numel() for name, p in named if "layers." in name and p.dim() == 2)


@pytest.mark.parametrize(
    ("name", "weights", "batch", "budgets"),
    [
        # In GB: bfloat16 weights, and a batch of 32,768 tokens; then the tokens of a batch on each card, 0 if refused.
        ("Llama-3.2-1B", 2.47, 2.29, (32768, 32768, 32768, 32768)),
        ("Llama-3.1-8B", 15.01, 4.18, (32768, 32768, 32768, 32768)),
        ("Gemma-2-27B", 54.45, 8.77, (0, 0, 32768, 32768)),
        ("Llama-3.1-70B", 139.01, 8.34, (0, 0, 0, 4096)),
    ],
)
def test_what_each_model_needs_on_each_card(name: str, weights: float, batch: float, budgets: tuple[int, ...]) -> None:
    config, size = SHAPES[name], 2 * parameters(SHAPES[name])[0]
    needs = partial(needs_of, config, itemsize=2, num_logits=1, weights=size)
    assert needs(32768).weights / GB == pytest.approx(weights, abs=0.005)
    assert needs(32768).activations / GB == pytest.approx(batch, abs=0.005)
    for card, budget in zip(CARDS, budgets, strict=True):
        planned = largest_fitting(needs, card * GB)
        if budget:
            check_memory(name, planned, card * GB, "cuda:0")
            assert planned.token_budget == budget
            assert planned.total <= card * GB < max(needs(2 * budget).total, (budget == 32768) * 200 * GB)
            continue
        with pytest.raises(LocalError, match=rf"^{name} needs about [\d.]+ GB .* and cuda:0 has {card}\.0 GB free; "):
            check_memory(name, planned, card * GB, "cuda:0")


def test_kept_prefixes_and_the_vocabulary_count() -> None:
    needs = partial(needs_of, SHAPES["Llama-3.1-8B"], 512, itemsize=2, num_logits=128256)
    assert needs(prefix_tokens=1000).prefixes == 1000 * 32 * 2 * 8 * 128 * 2  # layers, keys and values, heads, width
    assert needs(prefix_tokens=1000).total - needs().total == pytest.approx(needs(prefix_tokens=1000).prefixes)
    assert needs().logits == 256 * 128256 * 12


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", ["Llama-3.2-1B", "Llama-3.1-8B", "Llama-3.1-70B"])
def test_activations_are_those_that_torch_holds_at_once(
    monkeypatch: pytest.MonkeyPatch, name: str, whole: bool
) -> None:
    config = type(SHAPES[name])(**SHAPES[name].to_dict() | {"num_hidden_layers": 3})
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)  # fake tensors have none
    kind: Any = AutoModelForCausalLM if whole else AutoModelForSequenceClassification
    reads = range(10, 399) if whole else range(399, 400)
    groups = [[Tokens(array("i", [row] * 10 + [half] * 390), reads) for half in range(2)] for row in range(6)]
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        with torch.device("cuda:0"):
            model = kind.from_config(config, dtype=torch.bfloat16)
        register_attention()
        model.set_attn_implementation(PACKED)
        read_only_last_rows(model.base_model.layers[-1])
        network = ReadableNetwork(model, model.base_model, model.get_output_embeddings() or model.score, "sdpa", "")
        tracker = MemTracker()
        tracker.track_external(model)
        with tracker:
            _, _, computed = read_packed(network, pack(groups, "exact"))
    peak: Any = tracker.get_tracker_snapshot("peak")[torch.device("cuda:0")]
    held = next(size for what, size in peak.items() if str(what).endswith("ACT"))
    needed = needs_of(config, computed, itemsize=2, num_logits=1).activations
    assert 0.9 * needed < held < 1.01 * needed


@pytest.mark.parametrize("dtype", ["auto", "float16"])
def test_a_model_without_room_is_refused_before_its_weights_are_loaded(
    classifiers: Folders, monkeypatch: pytest.MonkeyPatch, dtype: Any
) -> None:
    folder = classifiers()
    size = Path(folder, "model.safetensors").stat().st_size  # in float32
    monkeypatch.setattr(planning, "free_memory", lambda _: 0.4e9)
    monkeypatch.setattr(planning, "GB", 1)  # in bytes
    monkeypatch.setattr(models, "load_weights", lambda *_, **__: pytest.fail("the weights were loaded"))
    with pytest.raises(LocalError) as failed:
        load(folder, device="cpu", dtype=dtype)
    found = re.fullmatch(
        rf"{folder} needs about (\d+)\.\d GB \((\d+)\.0 GB of weights, the rest for batches of 512 tokens\), and cpu "
        r"has 400000000\.0 GB free; set `device=\"spread\"`, or choose a smaller `dtype=\.\.\.` or model\.",
        str(failed.value),
    )
    assert found is not None
    assert int(found[2]) == pytest.approx(size if dtype == "auto" else size / 2, rel=0.05)
    assert int(found[1]) > 0.5e9
