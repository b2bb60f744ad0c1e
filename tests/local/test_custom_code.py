"""A reward model that brings its own code: run only when that is allowed, and read at the token that its code reads."""

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from pluralbench_local import LocalError, load, score
from pluralbench_rewards import Group
from reward_models import (
    Folders,
    change_config,
    classifier_alone,
    conversation_ids,
    differences,
    load_classifier,
    make_groups,
    work_of,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForSequenceClassification

REWARD_TOKEN = 499
CODE = """
import torch
from transformers import LlamaConfig, LlamaModel, LlamaPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutputWithPast


class TinyConfig(LlamaConfig):
    model_type = "internlm2"

    def __init__(self, reward_token_id=0, **kwargs):
        super().__init__(**kwargs)
        self.reward_token_id = reward_token_id


class InternLM2ForRewardModel(LlamaPreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.v_head = torch.nn.Linear(config.hidden_size, 1, bias=False)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        states = self.model(input_ids, attention_mask=attention_mask).last_hidden_state
        rewards = self.v_head(states).squeeze(-1)
        ends = attention_mask.cumsum(-1).argmax(-1)
        return SequenceClassifierOutputWithPast(logits=rewards.gather(1, ends.unsqueeze(1)))

    @torch.no_grad()
    def get_score(self, ids):
        ids = torch.tensor([ids + [self.config.reward_token_id]])
        return self(ids, torch.ones_like(ids)).logits[0, 0].item()
"""
POOLING = """
import torch
from transformers import LlamaModel, LlamaPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutputWithPast


class PoolingRewardModel(LlamaPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.regression_layer = torch.nn.Linear(config.hidden_size, 1, bias=False)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        states = self.model(input_ids, attention_mask=attention_mask).last_hidden_state
        pad = self.config.pad_token_id
        if pad is None and len(input_ids) > 1:
            raise ValueError("no padding token")
        last = (input_ids == pad).int().argmax(-1) - 1 if pad is not None else torch.tensor([-1])
        rewards = self.regression_layer(states)[torch.arange(len(states)), last % input_ids.shape[-1]]
        return SequenceClassifierOutputWithPast(logits=rewards.squeeze(-1))
"""

# As ArmoRM, QRM, LDL and URM: a gate reads the end of the user's turn, which must be there.
GATING = POOLING.replace(
    "        return Seq",
    """        ends = [(ids == self.config.eos_token_id).nonzero().flatten().tolist() for ids in input_ids]
        if any(len(places) < 2 for places in ends):
            raise ValueError("Token pattern not found in the list.")
        gates = torch.stack([states[row, places[-2]] for row, places in enumerate(ends)])
        rewards = rewards * self.regression_layer(gates).sigmoid()
        return Seq""",
)


@pytest.fixture
def saved(tmp_path: Path, classifiers: Folders, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`saved(code, head, **config)`: a model with code of its own, which the library copies into this test's folder."""
    modules = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def save(code: str, head: str, **config: Any) -> Path:
        folder = tmp_path / "model"
        shutil.copytree(classifiers(), folder)
        (folder / "tiny_reward.py").write_text(code, encoding="utf-8")
        weights = load_file(folder / "model.safetensors")
        save_file(
            {name.replace("score.", f"{head}."): weight for name, weight in weights.items()},
            folder / "model.safetensors",
            metadata={"format": "pt"},
        )
        change_config(str(folder), **config)
        return folder

    return save


@pytest.fixture
def folder(saved: Callable[..., Path]) -> Path:
    """A model whose code appends a token to each conversation."""
    return saved(
        CODE,
        "v_head",
        architectures=["InternLM2ForRewardModel"],
        model_type="internlm2",
        reward_token_id=REWARD_TOKEN,
        auto_map={"AutoConfig": "tiny_reward.TinyConfig", "AutoModel": "tiny_reward.InternLM2ForRewardModel"},
    )


@pytest.fixture
def pooling(saved: Callable[..., Path]) -> Callable[..., Path]:
    """`pooling(code=POOLING, **config)`: a model without a `score` head, which finds the last token as ArmoRM does."""

    def save(code: str = POOLING, **config: Any) -> Path:
        auto_map = {"AutoModelForSequenceClassification": "tiny_reward.PoolingRewardModel"}
        return saved(code, "regression_layer", architectures=["PoolingRewardModel"], auto_map=auto_map, **config)

    return save


def test_code_of_the_models_own_is_not_run_unasked_and_the_option_that_runs_it_is_named(folder: Path) -> None:
    ran = folder / "ran"
    (folder / "tiny_reward.py").write_text(f"open({str(ran)!r}, 'w')\n{CODE}", encoding="utf-8")
    with pytest.raises(LocalError) as failed:
        load(str(folder), device="cpu")
    assert not ran.exists()
    assert str(failed.value) == (
        f"{folder} comes with Python code, which would run with your rights; read it, and if you trust it set "
        "`trust_remote_code=True`."
    )


@pytest.mark.parametrize("mode", ["fast", *heavy("exact")])
def test_a_special_architecture_is_read_as_its_own_code_reads_it(classifiers: Folders, folder: Path, mode: str) -> None:
    model, groups = load_classifier(str(folder), trust_remote_code=True), make_groups(1)
    assert model.template.append == (REWARD_TOKEN,)
    assert model.network.unpackable == ""
    scored = score(model, groups, mode=mode)
    remote = AutoModel.from_pretrained(str(folder), trust_remote_code=True).eval()
    tokenizer = model.template.tokenizer
    own = [[remote.get_score(conversation_ids(tokenizer, group, text)) for text in group.responses] for group in groups]
    assert max(differences(scored.scores, own)) < 1e-4
    assert max(differences(own, classifier_alone(classifiers(), groups))) > 0.01  # the token tells
    counts = [[len(conversation_ids(tokenizer, group, text)) + 1 for text in group.responses] for group in groups]
    assert scored.tokens == counts


def test_the_appended_token_counts_and_survives_cutting(folder: Path) -> None:
    model, [group] = load_classifier(str(folder), trust_remote_code=True), make_groups(1)[5:6]
    remote = AutoModel.from_pretrained(str(folder), trust_remote_code=True).eval()
    conversations = [conversation_ids(model.template.tokenizer, group, text) for text in group.responses]
    cut = 5
    limit = max(map(len, conversations)) + 1 - cut
    scored = score(model, [group], max_length=limit, on_overflow="truncate-left")
    assert scored.scores[0] == pytest.approx([remote.get_score(ids[cut:]) for ids in conversations], abs=1e-4)


def test_rewards_that_only_the_models_code_computes_name_the_option_that_runs_it(pooling: Callable[..., Path]) -> None:
    folder = pooling()
    with pytest.raises(LocalError) as failed:
        load(str(folder), device="cpu")
    assert str(failed.value) == (
        f"{folder} has no weights for score.weight, so what it computes would be random; it comes with Python code of "
        "its own, which computes its rewards: read it, and if you trust it set `trust_remote_code=True`."
    )


def test_code_without_a_reward_head_is_no_reward_model(folder: Path) -> None:
    renamed = CODE.replace("self.v_head", "self.reward")
    (folder / "tiny_reward.py").write_text(renamed, encoding="utf-8")
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name.replace("v_head.", "reward."): weight for name, weight in weights.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(LocalError, match=r"^.* has no reward head \(.*v_head.*\); it is not a reward model\.$"):
        load(str(folder), device="cpu", trust_remote_code=True)


def by_own_code(folder: Path, tokenizer: Any, groups: Sequence[Group], dtype: str = "float32") -> list[list[float]]:
    """Scores of the model's own forward pass, one conversation at a time."""
    auto: Any = AutoModelForSequenceClassification
    remote = auto.from_pretrained(str(folder), trust_remote_code=True, dtype=getattr(torch, dtype)).eval()
    with torch.inference_mode():
        return [
            [remote(torch.tensor([conversation_ids(tokenizer, group, text)])).logits.item() for text in group.responses]
            for group in groups
        ]


@pytest.mark.parametrize("mode", ["fast", *heavy("exact")])
def test_logits_of_any_shape_are_a_row_of_each_conversation(pooling: Callable[..., Path], mode: str) -> None:
    """Several rewards, which the label weights, and the only one of a batch of one, without any dimension."""
    groups = make_groups(1, number=2)
    folder = pooling(pad_token_id=2)
    expected = score(load_classifier(str(folder), trust_remote_code=True), groups, mode=mode).scores
    code = POOLING.replace("logits=rewards.squeeze(-1)", "logits=rewards.squeeze()")
    (folder / "tiny_reward.py").write_text(code, encoding="utf-8")
    assert score(load_classifier(str(folder), trust_remote_code=True), groups, mode=mode).scores == expected
    code = POOLING.replace("logits=rewards.squeeze(-1)", "logits=torch.cat((rewards, -rewards), 1)")
    (folder / "tiny_reward.py").write_text(code, encoding="utf-8")
    model = load_classifier(str(folder), trust_remote_code=True, label="LABEL_0:0.25,1:-0.75")
    assert max(differences(score(model, groups, mode=mode).scores, expected)) < 1e-5


@pytest.mark.parametrize(("mode", "dtype"), [("fast", "float32"), *heavy(("exact", "float32"), ("exact", "bfloat16"))])
def test_a_gate_in_the_models_code_sees_the_whole_conversation(
    pooling: Callable[..., Path], mode: str, dtype: str
) -> None:
    folder, groups = pooling(GATING, pad_token_id=2), make_groups(1)
    model = load_classifier(str(folder), trust_remote_code=True, dtype=dtype)
    scored = score(model, groups, mode=mode)
    tokenizer = model.template.tokenizer
    assert max(differences(scored.scores, by_own_code(folder, tokenizer, groups, dtype))) < (
        1e-4 if dtype == "float32" else 0.1
    )
    assert (work_of(scored).batches == sum(len(set(group.responses)) for group in groups)) == (mode == "exact")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    with pytest.raises(LocalError, match=r"fails on a conversation \(Token pattern not found in the list\)\.$"):
        score(model, groups[3:4], mode=mode)


@pytest.mark.parametrize(
    ("pad", "mode"), [(2, "fast"), (REWARD_TOKEN, "fast"), (None, "fast"), *heavy((REWARD_TOKEN, "exact"))]
)
def test_a_model_that_finds_its_last_token_by_padding_is_scored_as_its_own_forward_pass_scores(
    pooling: Callable[..., Path], pad: int | None, mode: str
) -> None:
    folder, groups = pooling(pad_token_id=pad, num_labels=3), make_groups(1)
    model = load_classifier(str(folder), trust_remote_code=True)
    scored = score(model, groups, mode=mode)
    assert max(differences(scored.scores, by_own_code(folder, model.template.tokenizer, groups))) < 1e-4
    work = work_of(scored)
    alone = mode == "exact" or pad is None
    distinct = sum(len(set(group.responses)) for group in groups)
    assert work.batches == distinct if alone else work.batches < distinct / 4


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (("logits=rewards.squeeze(-1)", "logits=states"), "logits of shape"),
        (("last = ", "last = missing + "), "missing"),
    ],
)
def test_logits_that_are_no_rewards_and_a_forward_pass_that_fails_are_said_in_a_sentence(
    pooling: Callable[..., Path], changed: tuple[str, str], named: str
) -> None:
    model = load_classifier(str(pooling(POOLING.replace(*changed))), trust_remote_code=True)
    with pytest.raises(LocalError, match=named):
        score(model, make_groups(1))
