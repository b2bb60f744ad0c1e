"""Whatever computes a batch, it computes the same: kernels of attention, fused blocks."""

from array import array
from typing import Any

import pytest
import torch
from case_marks import heavy
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_local import attention, faster_products, score
from pluralbench_local.attention import attend_blocked, attend_fused, float32_is_faster
from pluralbench_local.packing import Tokens, pack
from pluralbench_rewards import Group, Mode
from reward_models import (
    Folders,
    classifier_alone,
    conversation_ids,
    differences,
    load_classifier,
    load_plainly,
    make_groups,
    make_tokenizer,
    undecided,
    user,
    work_of,
)
from torch import nn
from transformers import AutoModelForSequenceClassification, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP

make_block: Any = LlamaMLP  # untyped


RULES = "Answer in the tone of a friend, never longer than a postcard, and say where you are not sure. " * 6


@st.composite
def layouts(draw: st.DrawFn) -> "list[list[Tokens]]":
    """Groups whose conversations share beginnings of several lengths."""
    rules = [7] * draw(st.integers(0, 40))
    groups = []
    for number in range(draw(st.integers(1, 3))):
        prompt = [*rules, 10 + number, *[8] * draw(st.integers(0, 30))]
        answers = draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
        whole = [array("i", [*prompt, 20 + place, *[9] * length]) for place, length in enumerate(answers)]
        groups.append([Tokens(ids, range(draw(st.integers(0, len(ids) - 1)), len(ids))) for ids in whole])
    return groups


@given(layouts(), st.sampled_from([(4, 4), (4, 2)]), st.booleans())
def test_every_kernel_attends_as_a_conversation_alone_does(
    groups: "list[list[Tokens]]", heads: tuple[int, int], last: bool
) -> None:
    packed = pack(groups, "fast")
    draw = torch.Generator().manual_seed(len(packed.ids))
    query, key, value = (
        torch.randn(1, many, len(packed.ids), 8, generator=draw) for many in (heads[0], heads[1], heads[1])
    )
    computed = [kernel(packed, query, key, value, 0.3, last=last)[0] for kernel in (attend_fused, attend_blocked)]
    for segment in packed.segments:
        seen = [row for run in (*segment.prefix, range(segment.start, segment.end)) for row in run]
        rows = segment.reads if last else range(segment.start, segment.end)
        alone = nn.functional.scaled_dot_product_attention(
            query[:, :, seen], key[:, :, seen], value[:, :, seen], is_causal=True, scale=0.3, enable_gqa=True
        )[0].transpose(0, 1)
        for row in rows:
            for attended in computed:
                assert torch.allclose(attended[row], alone[seen.index(row)], atol=1e-5)


@pytest.mark.parametrize("architecture", ["llama", "gemma2", *heavy("mistral")])
def test_what_several_prompts_begin_with_is_computed_once(classifiers: Folders, architecture: str) -> None:
    folder = classifiers(architecture)
    told = [{"role": "system", "content": RULES}]
    groups = [
        Group(one.id, [*told, *one.prompt], one.responses) for one in make_groups(5, number=6) if one.id.startswith("q")
    ]
    scored = score(load_classifier(folder), groups, mode="fast")
    assert work_of(scored).computed_tokens < work_of(scored).unique_tokens / 2
    alone = classifier_alone(folder, groups)
    assert max(differences(scored.scores, alone)) < 1e-4
    assert undecided(scored.scores, alone) == 0


@pytest.mark.parametrize(
    "architecture", ["llama", *heavy("mistral", "gemma2", "gemma3", "mixtral", "qwen2-moe", "phimoe")]
)
def test_exact_is_one_at_a_time_to_the_bit_in_single_precision(classifiers: Folders, architecture: str) -> None:
    folder = classifiers(architecture)
    groups = [*make_groups(3, number=4), Group("long", user("a quiet hobby " * 60), ["drumming " * 20, "tea"])]
    plain, tokenizer = load_plainly(AutoModelForSequenceClassification, folder), make_tokenizer()
    with torch.inference_mode():
        alone = [
            [
                float(plain(input_ids=torch.tensor([conversation_ids(tokenizer, group, text)])).logits[0, 0])
                for text in group.responses
            ]
            for group in groups
        ]
    for budget in (None, 300):
        assert score(load_classifier(folder), groups, mode="exact", token_budget=budget).scores == alone


def multiplies_bfloat16() -> bool:
    """Whether oneDNN has products in bfloat16 on this processor: on x86-64 with AVX2 alone it has none."""
    states = torch.ones(1, 8, 16, dtype=torch.bfloat16)
    try:
        torch.ops.mkldnn._linear_pointwise(states, states[0], None, "none", [], "")
    except (RuntimeError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("in_float32", [False, True])
@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_pytorch_tanh"])
def test_a_fused_block_computes_what_its_own_code_does(
    monkeypatch: pytest.MonkeyPatch, activation: str, in_float32: bool
) -> None:
    monkeypatch.setattr(faster_products, "in_fast_mode", lambda: True)
    monkeypatch.setattr(faster_products, "_multiplies_in_float32", lambda _: in_float32)
    torch.manual_seed(0)
    dtype = torch.bfloat16
    config = LlamaConfig(hidden_size=64, intermediate_size=96, hidden_act=activation, mlp_bias=True)
    block = make_block(config).to(dtype)
    states = torch.randn(1, 40, 64).to(dtype)
    with torch.inference_mode():
        own = block(states)
        number = faster_products.fuse_gated_mlps(nn.ModuleList([block]))
        fused = block(states)
    assert number == (in_float32 or multiplies_bfloat16())
    assert torch.allclose(own.float(), fused.float(), atol=4 * torch.finfo(dtype).eps * float(own.abs().max()))
    assert number or torch.equal(own, fused)


def test_a_block_of_another_activation_or_in_single_precision_stays_as_it_is() -> None:
    for activation, dtype in (("relu", torch.bfloat16), ("silu", torch.float32)):
        block = make_block(LlamaConfig(hidden_size=64, intermediate_size=96, hidden_act=activation)).to(dtype)
        assert faster_products.fuse_gated_mlps(nn.ModuleList([block])) == 0


@pytest.mark.parametrize("in_float32", [False, True])
@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_fused_blocks_are_for_fast_mode_alone(
    classifiers: Folders, monkeypatch: pytest.MonkeyPatch, mode: Mode, in_float32: bool
) -> None:
    monkeypatch.setattr(faster_products, "_multiplies_in_float32", lambda _: in_float32)
    folder, groups = classifiers("llama"), make_groups(2)
    fused = score(load_classifier(folder, dtype="bfloat16"), groups, mode=mode)
    monkeypatch.setattr(faster_products, "_computes_the_same", lambda _: False)
    own = score(load_classifier(folder, dtype="bfloat16"), groups, mode=mode)
    fuses = in_float32 or multiplies_bfloat16()
    assert (own.scores != fused.scores) == (fuses and mode == "fast")


def test_a_fused_block_that_computes_something_else_is_found_out(
    classifiers: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faster_products, "_fused_forward", lambda _: torch.zeros_like)
    assert load_classifier(classifiers("llama"), dtype="bfloat16").network.unpackable == ""
    monkeypatch.setattr(faster_products, "_computes_the_same", lambda _: True)
    model = load_classifier(classifiers("llama"), dtype="bfloat16")
    assert model.network.unpackable == "its hidden states change when it is packed"


@pytest.mark.parametrize(
    ("features", "faster"),
    [
        ({"architecture": "x86_64", "cpu_name": "Intel Xeon", "avx512_bf16": True}, True),
        ({"architecture": "x86_64", "cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, False),
        ({"architecture": "x86_64", "cpu_name": "AMD EPYC", "avx512_bf16": True}, False),
        ({"architecture": "x86_64", "cpu_name": "AMD EPYC", "avx2": True}, True),
        ({"architecture": "aarch64"}, False),
        ({}, False),
    ],
)
def test_the_processor_decides_about_float32(
    monkeypatch: pytest.MonkeyPatch, features: dict[str, Any], faster: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: features, raising=False)
    assert float32_is_faster.__wrapped__() == faster


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_float32_is_for_fast_mode_alone(classifiers: Folders, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    folder, groups = classifiers("llama", hidden_size=128, intermediate_size=256), make_groups(3, number=6)
    scores = []
    for faster in (False, True):
        monkeypatch.setattr(attention, "float32_is_faster", lambda faster=faster: faster)
        scores.append(score(load_classifier(folder, dtype="bfloat16"), groups, mode=mode).scores)
    assert (scores[0] == scores[1]) == (mode == "exact")
    alone = classifier_alone(folder, groups)
    # Whose last bits come out nearer differs by processor and by model.
    spreads = [sum(difference**2 for difference in differences(each, alone)) for each in scores]
    assert spreads[1] <= 2 * spreads[0]


@given(st.integers(1, 300), st.booleans())
def test_a_product_in_float32_is_the_exact_one_rounded(rows: int, bias: bool) -> None:
    torch.manual_seed(rows)
    layer = nn.Linear(64, 32, bias=bias, dtype=torch.bfloat16)
    states = torch.randn(1, rows, 64).to(torch.bfloat16)
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        own, exact = layer(states), nn.Linear(64, 32, bias=bias, dtype=torch.float64)
        exact.load_state_dict({name: weights.double() for name, weights in layer.state_dict().items()})
        faster_products.use_faster_products(layer)
        assert torch.equal(layer(states), own)
        patch.setattr(faster_products, "computes_in_float32", lambda _: True)
        fast, expected = layer(states), exact(states.double())
    if rows < faster_products.FLOAT32_ROWS:
        assert torch.equal(fast, own)
    assert fast.dtype == torch.bfloat16
    assert torch.allclose(fast.double(), expected, rtol=2**-8, atol=1e-5)
