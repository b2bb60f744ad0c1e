"""Scoring rehearsed on a card that computes no numbers: devices, dtypes, shapes, kernels, and waits for the card.

A card says little about itself here: not how fast a kernel is, nor what it computes. What it would refuse fails, and
each place where the processor waits for it is in `WAITS`, with the reason why it stays.
"""

from array import array
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from pairwise_models import save_general_preference, save_pairrm
from pluralbench_local import LocalRewardModel, load, load_pairwise, score
from pluralbench_local.config import described
from pluralbench_local.network import read_packed
from pluralbench_local.packing import Tokens, pack
from pluralbench_local.personal.backbones import load_backbone
from pluralbench_local.personal.embedding import embed
from pluralbench_rewards import Mode, ScoringConfig
from pretended_card import CARD, Card, pretended_card
from process_models import PROCESS_MODELS, answers_in_steps, save_process_model
from reward_models import Folders, make_groups, save_adapter, work_of
from value_heads import save_value_head

pytestmark = pytest.mark.heavy

# Of one and of three responses, one of them empty; more run the same code.
GROUPS = [group for place, group in enumerate(make_groups(1, number=3)[:4]) if place in (0, 3)]
PACKABLE = ("llama", "gemma2", "gemma3")  # plain, capped, with a sliding window
OF_A_BATCH = "the rewards of a batch are its result; an error of the card shows here, too"
WAITS = {
    "classifier": {"scoring.LocalRewardModel.rewards: to the CPU": OF_A_BATCH},
    "implicit": {"scoring.LocalRewardModel.rewards: to the CPU": OF_A_BATCH},
    "embed": {"backbones.Decoder._states: to the CPU": "the vectors of a batch are its result, kept on the CPU"},
    "load": {
        "models.resolve_device: number": "an unusable device is refused before anything is loaded",
        "models.load_model, module.Module.to.convert: to the card": "the weights",
        "network._packing_problem: number": "decides once whether the model can be packed",
        "probes.reads_as_model.<genexpr>: number": "decides once whether the head is read as the model's own code does",
    },
}
"""By path: each place where the processor waits for the card, and why. None is in a forward pass."""
COMPARING = {
    "scoring.LocalRewardModel.rewards: to the CPU",
    "general_preference.GeneralPreferenceModel._vectors: to the CPU",
}
"""Where a comparison waits: its results."""
OF_DEBERTA = "network.read_padded, modeling_deberta_v2.make_log_bucket_position: to the card"
"""Where DeBERTa itself waits in a forward pass: it counts distances anew."""


def check_waits(card: "Card", *paths: str) -> None:
    """The processor waited where the table says, and nowhere else."""
    assert set(card.waits) == {place for path in paths for place in WAITS[path]}
    assert not card.in_layers


@pytest.mark.parametrize(
    ("architecture", "mode"),
    [
        ("llama", "fast"),
        ("gemma2", "fast"),
        ("gemma3", "exact"),
        ("bert", "exact"),
        ("modernbert", "fast"),
    ],
)
def test_a_classifier_scores(folders: Folders, architecture: str, mode: Mode) -> None:
    with pretended_card() as card:
        model = load(folders(architecture), device="cuda", dtype="bfloat16")
        card.forget()
        scored = score(model, GROUPS, mode=mode)
        check_waits(card, "classifier")
        assert card.waits.total() == work_of(scored).batches
        assert work_of(scored).strategy == (mode if architecture in PACKABLE else "padded")
        assert [len(values) for values in scored.scores] == [len(group.responses) for group in GROUPS]
        assert bool(card.kernels["varlen"]) == (architecture == "llama")


@pytest.mark.parametrize(
    ("family", "mode"),
    # Of several layers, normalized, and of several numbers.
    [("grm-mlp", "exact"), ("beaver-cost", "fast"), ("qrm-linear", "fast")],
)
def test_a_value_head_scores(tmp_path: Path, family: str, mode: Mode) -> None:
    folder = save_value_head(tmp_path / "model", family, dtype="bfloat16")
    with pretended_card() as card:
        model = load(folder, device="cuda")
        card.forget()
        scored = score(model, GROUPS, mode=mode)
        check_waits(card, "classifier")
        assert work_of(scored).strategy == mode
        assert [len(values) for values in scored.scores] == [len(group.responses) for group in GROUPS]


@pytest.mark.parametrize(("architecture", "mode"), [("llama", "exact"), ("bloom", "exact")])
def test_a_token_reward_scores(folders: Folders, architecture: str, mode: Mode) -> None:
    tokens: dict[str, Any] = {"positive_token": "y", "negative_token": "n"}
    with pretended_card() as card:
        model = load(folders(architecture, "implicit"), kind="token", **tokens, device="cuda", dtype="bfloat16")
        card.forget()
        scored = score(model, GROUPS, mode=mode)
        check_waits(card, "classifier")
        assert work_of(scored).strategy == (mode if architecture in PACKABLE else "padded")
        assert [len(values) for values in scored.scores] == [len(group.responses) for group in GROUPS]


@pytest.mark.parametrize(("form", "mode"), [("qwen", "fast"), ("trl-encoder", "exact")])
def test_a_process_reward_scores(tmp_path: Path, form: str, mode: Mode) -> None:
    folder, groups = save_process_model(tmp_path / "model", form, dtype="bfloat16"), answers_in_steps(1, number=3)
    with pretended_card() as card:
        model = load(folder, kind="process", **PROCESS_MODELS[form].options, device="cuda")
        card.forget()
        scored = score(model, groups, mode=mode)
        check_waits(card, "classifier")
        assert work_of(scored).strategy == ("padded" if form == "trl-encoder" else mode)
        assert [len(values) for values in scored.scores] == [len(group.responses) for group in groups]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft 0.21 uses a name that transformers 5.23 deprecates
def test_an_adapter_is_merged_and_scores(tmp_path: Path, folders: Folders) -> None:
    pytest.importorskip("peft", reason="needs the extra `lora`")
    folder = save_adapter(tmp_path / "adapter", folders("llama", "implicit"), task_type="SEQ_CLS")
    with pretended_card() as card:
        model = load(str(folder), device="cuda", dtype="bfloat16")
        card.forget()
        scored = score(model, GROUPS)
        check_waits(card, "classifier")
    assert work_of(scored).strategy == "fast"
    assert [len(values) for values in scored.scores] == [len(group.responses) for group in GROUPS]


@pytest.mark.parametrize(("capability", "dtype"), [((7, 5), "float16"), ((8, 0), "float16")])
def test_the_kernel_is_chosen_by_capability(folders: Folders, capability: tuple[int, int], dtype: Any) -> None:
    with pretended_card(capability) as card:
        model = load(folders(), device="cuda:0", dtype=dtype)
        card.forget()
        scored = score(model, GROUPS)
        check_waits(card, "classifier")
    assert work_of(scored).strategy == "fast"
    assert bool(card.kernels["varlen"]) == (capability >= (8, 0))


def conversations(*texts: list[int]) -> "list[Tokens]":
    return [Tokens(array("i", ids), range(len(ids) - 1, len(ids))) for ids in texts]


def test_each_level_of_shared_prefixes_is_a_call_of_the_kernel(folders: Folders) -> None:
    rules, prompt, part = [7] * 40, [8] * 40, [9] * 40
    answers = [[*rules, *prompt, *part, end] for end in (10, 11)] + [[*rules, *prompt, 12, 13], [*rules, 14]]
    groups = [conversations(*answers)]
    packed = pack(groups, "fast")
    depth = max(len(segment.prefix) for segment in packed.segments)
    assert depth == 3
    with pretended_card() as card, torch.inference_mode():
        model = load(folders(), device="cuda", dtype="bfloat16")
        assert isinstance(model, LocalRewardModel)
        network = model.network
        card.forget()
        states, rows, tokens = read_packed(network, packed)
        assert card.kernels["varlen"] == (1 + depth) * network.model.config.num_hidden_layers
        assert not card.waits
    assert (states.shape, states.dtype, states.device) == ((len(answers), 64), torch.bfloat16, CARD)
    assert sorted(index for indices in rows for index in indices) == list(range(len(answers)))
    assert tokens == 3 * 40 + 2 + 2 + 1


def test_single_precision_takes_no_16_bit_kernel(folders: Folders) -> None:
    with pretended_card((9, 0)) as card:
        model = load(folders(), device="cuda", dtype="float32")
        card.forget()
        score(model, GROUPS, mode="exact")
        check_waits(card, "classifier")
        assert not card.kernels


def test_implicit_rewards(folders: Folders) -> None:
    with pretended_card() as card:
        name, reference = folders("gemma2", "implicit"), folders("gemma2", "implicit", seed=1)
        model = load(name, kind="implicit", reference=reference, device="cuda", dtype="bfloat16")
        card.forget()
        scored = score(model, GROUPS)
        check_waits(card, "implicit")
        assert card.waits.total() == work_of(scored).batches


def test_embeddings(folders: Folders) -> None:
    with pretended_card() as card:
        backbone = load_backbone(described(folders("llama", "implicit"), device="cuda", dtype="bfloat16"))
        card.forget()
        corpus = embed(GROUPS, [[0] * len(group.responses) for group in GROUPS], backbone, posts=1)
        check_waits(card, "embed")
    assert corpus.vectors.device.type == "cpu"
    assert corpus.vectors.shape[1] == 64


def test_loading_waits_before_the_first_batch_only(folders: Folders, packable: set[Any]) -> None:
    packable.clear()
    with pretended_card() as card:
        load(folders(), device="cuda", dtype="bfloat16")
        assert set(WAITS["load"]) == set(card.waits)


def test_the_tolerance_is_measured(folders: Folders) -> None:
    with pretended_card():
        model = load(folders(), device="cuda", dtype="bfloat16")
        scored = replace(model, measures_tolerance=True).score(GROUPS)
    assert scored.tolerance is not None


def test_batches_inherit_a_prefix_without_waiting(folders: Folders) -> None:
    rules = [{"role": "system", "content": "Answer as a friend would, and say where you are not sure. " * 9}]
    groups = [replace(group, prompt=[*rules, *group.prompt]) for group in make_groups(2, number=4)[:4]]
    with pretended_card() as card:
        model = load(folders("gemma3"), device="cuda", dtype="bfloat16")
        card.forget()
        work = work_of(score(model, groups, token_budget=400))
        check_waits(card, "classifier")
        assert card.waits.total() == work.batches > 1


@pytest.mark.parametrize(
    ("family", "mode"),
    [("pairrm", "fast"), ("general-preference", "exact"), ("pair-preference", "fast")],
)
def test_a_model_that_only_compares(tmp_path: Path, folders: Folders, family: str, mode: Mode) -> None:
    options: dict[str, Any] = {}
    if family == "pairrm":
        folder = save_pairrm(tmp_path / "model", dtype="bfloat16")
    elif family == "general-preference":
        folder, options = save_general_preference(tmp_path / "model", dtype="bfloat16"), {"label": "scaled"}
    else:
        folder, options = folders("gemma2", "implicit"), {"kind": "pairwise", "dtype": "bfloat16"}
    groups = [group for group in GROUPS if len(group.responses) > 1]
    pairs = [[*permutations(range(len(group.responses)), 2)] for group in groups]
    with pretended_card() as card:
        scoring = ScoringConfig.model_validate({"mode": mode})
        model = load_pairwise(folder, device="cuda", scoring=scoring, **options)
        card.forget()
        compared = model.compare(groups, pairs)
        own = {OF_DEBERTA} if family == "pairrm" else set()
        assert set(card.waits) <= COMPARING | own
        assert set(card.in_layers) == own
    assert work_of(compared).strategy == ("padded" if family == "pairrm" else mode)
    assert [len(values) for values in compared.scores] == [len(own) for own in pairs]
