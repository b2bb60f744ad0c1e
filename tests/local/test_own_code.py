"""Code that comes with a model and was written for an earlier transformers gives what its class gives made directly."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from pluralbench_local import LocalError, LocalModel, score
from pluralbench_local.conversations import tokenize
from pluralbench_local.training_model import load_trainee, rewards_of, training_template
from pluralbench_rewards import Group
from reward_models import (
    TEMPLATE,
    Folders,
    change_config,
    conversation_ids,
    differences,
    load_classifier,
    make_groups,
    make_tokenizer,
    work_of,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForSequenceClassification
from transformers.models.llama import modeling_llama

CONSTANTS = """
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput


class TurningConfig(PretrainedConfig):
    model_type = "turning"

    def __init__(self, vocab_size=500, hidden_size=8, rope_theta=100, rope_scaling=None, **kwargs):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.num_hidden_layers, self.num_attention_heads = 1, 1
        self.rope_theta, self.rope_scaling = rope_theta, rope_scaling
        super().__init__(**kwargs)


class TurningBody(PreTrainedModel):
    config_class = TurningConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        factor = 1.0
        if config.rope_scaling is not None:
            assert config.rope_scaling["type"] == "linear"
            factor = config.rope_scaling["factor"]
        places = torch.arange(0, config.hidden_size, 2).float() / config.hidden_size
        self.register_buffer("inv_freq", config.rope_theta ** -places / factor, persistent=False)
        self.register_buffer("shift", torch.linspace(1, 2, config.hidden_size))
        self.scale = torch.full((config.hidden_size,), 3.0)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, position_ids=None, use_cache=None):
        angles = torch.arange(input_ids.shape[1])[:, None] * self.inv_freq
        states = self.embed_tokens(input_ids) * torch.cat((angles.cos(), angles.sin()), -1)
        return BaseModelOutput(last_hidden_state=states.cumsum(1) * self.scale + self.shift)


class InternLM2ForRewardModel(PreTrainedModel):
    config_class, base_model_prefix = TurningConfig, "model"
    _keys_to_ignore_on_load_missing = ["shift"]

    def __init__(self, config):
        super().__init__(config)
        self.model = TurningBody(config)
        self.v_head = nn.Linear(config.hidden_size, 1, bias=False)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        return SequenceClassifierOutput(logits=self.v_head(self.model(input_ids).last_hidden_state[:, -1]))
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`written(code, auto_map, weights, **config)`: the folder of a model whose code is in `own.py`."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(code: str, auto_map: dict[str, str], weights: dict[str, torch.Tensor], **config: Any) -> Path:
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "own.py").write_text(code, encoding="utf-8")
        (folder / "config.json").write_text(json.dumps(config | {"auto_map": auto_map}), encoding="utf-8")
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        make_tokenizer().save_pretrained(folder)
        return folder

    return write


def alone(logit: Callable[[Any], Any], tokenizer: Any, groups: Sequence[Group]) -> list[list[float]]:
    """The logit of each conversation in a forward pass of its own."""
    with torch.inference_mode():
        return [
            [float(logit(torch.tensor([conversation_ids(tokenizer, group, text)]))) for text in group.responses]
            for group in groups
        ]


@pytest.mark.parametrize(
    ("kind", "scaling", "saved"),
    [
        ("AutoModel", None, False),
        *heavy(
            ("AutoModel", {"type": "linear", "factor": 2.0}, False),
            ("AutoModel", None, True),
            ("AutoModelForSequenceClassification", None, False),
        ),
    ],
)
def test_tensors_that_a_models_own_code_makes_are_those_of_its_code(
    written: Callable[..., Path], kind: str, scaling: dict[str, Any] | None, saved: bool
) -> None:
    """Buffers outside the files, plain tensors, and a buffer that may be missing, which the files have or not."""
    torch.manual_seed(0)
    head = "v_head" if kind == "AutoModel" else "rewarding"
    weights = {"model.embed_tokens.weight": torch.randn(500, 8), f"{head}.weight": torch.randn(1, 8)}
    weights |= {"model.shift": torch.randn(8)} if saved else {}
    auto_map = {"AutoConfig": "own.TurningConfig", kind: "own.InternLM2ForRewardModel"}
    appended = [7] if kind == "AutoModel" else []
    folder = written(
        CONSTANTS.replace("v_head", head),
        auto_map,
        weights,
        model_type="turning",
        architectures=["InternLM2ForRewardModel" if appended else "TurningModel"],
        reward_token_id=7,
        rope_scaling=scaling,
    )
    model, groups = load_classifier(str(folder), trust_remote_code=True), make_groups(1)
    inverse = 100 ** -(torch.arange(0, 8, 2) / 8) / (scaling or {"factor": 1.0})["factor"]

    def logit(ids: Any) -> Any:
        """The reward by the formula of the code."""
        ids = torch.tensor([*ids[0], *appended])
        angles = torch.arange(len(ids))[:, None] * inverse
        states = weights["model.embed_tokens.weight"][ids] * torch.cat((angles.cos(), angles.sin()), -1)
        shift = weights.get("model.shift", torch.linspace(1, 2, 8))
        return (3.0 * states.sum(0) + shift) @ weights[f"{head}.weight"][0]

    own = alone(logit, model.template.tokenizer, groups)
    assert max(differences(score(model, groups).scores, own)) < 1e-3


PUBLISHED = """
import torch
from torch import nn
from transformers import LlamaModel, LlamaPreTrainedModel
from transformers.models.llama.modeling_llama import LLAMA_INPUTS_DOCSTRING
from transformers.utils import ModelOutput, add_start_docstrings_to_model_forward


class GatedRewardModel(LlamaPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.regression_layer = nn.Linear(config.hidden_size, 6, bias=False)
        self.mixing = nn.Linear(config.hidden_size, 3)
        self.post_init()

    @classmethod
    def from_pretrained(cls, name, *arguments, **options):
        return super().from_pretrained(name, attn_implementation="flash_attention_2")

    @add_start_docstrings_to_model_forward(LLAMA_INPUTS_DOCSTRING)
    def forward(self, input_ids=None, attention_mask=None):
        states = self.model(input_ids, attention_mask=attention_mask)[0]
        ends = (input_ids == self.config.pad_token_id).int().argmax(-1) - 1
        rows = torch.arange(len(input_ids))
        rewards = self.regression_layer(states[rows, ends % input_ids.shape[1]]).view(-1, 3, 2).mean(2)
        gate = self.mixing(states[:, 0]).softmax(-1)
        return ModelOutput(logits=(gate * rewards).sum(1, keepdim=True))
"""


def llama_with(folder: str, *heads: tuple[str, Sequence[int]]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Configuration and weights of a classifier's folder, with other heads in the place of its own."""
    torch.manual_seed(0)
    weights = load_file(Path(folder) / "model.safetensors")
    own = {name: tensor for name, tensor in weights.items() if not name.startswith("score.")}
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    return config, own | {name: torch.randn(*shape) * 0.3 for name, shape in heads}


@pytest.mark.parametrize("dropped", [False, *heavy(True)])
def test_code_for_an_earlier_transformers_is_imported_and_loads_all_weights(
    written: Callable[..., Path], classifiers: Folders, dropped: bool
) -> None:
    """It imports a text that is gone, and its `from_pretrained` drops its arguments and wants a GPU's attention."""
    heads = [("regression_layer.weight", (6, 64)), ("mixing.weight", (3, 64)), ("mixing.bias", (3,))]
    config, weights = llama_with(classifiers(), *heads)
    if dropped:
        del weights["mixing.bias"]
    auto_map = {"AutoModelForSequenceClassification": "own.GatedRewardModel"}
    folder = written(PUBLISHED, auto_map, weights, **(config | {"architectures": ["GatedRewardModel"]}))
    if dropped:
        with pytest.raises(LocalError, match=r"has no weights for mixing\.bias, so what it computes would be random"):
            load_classifier(str(folder), trust_remote_code=True)
        return
    model, groups = load_classifier(str(folder), trust_remote_code=True), make_groups(1)
    body = AutoModel.from_pretrained(classifiers()).eval()

    def logit(ids: Any) -> Any:
        """The reward by the formula of the code."""
        states = body(ids).last_hidden_state[0]
        rewards = (weights["regression_layer.weight"] @ states[-1]).view(3, 2).mean(1)
        return (weights["mixing.weight"] @ states[0] + weights["mixing.bias"]).softmax(0) @ rewards

    assert max(differences(score(model, groups).scores, alone(logit, model.template.tokenizer, groups))) < 1e-4
    assert not hasattr(modeling_llama, "LLAMA_INPUTS_DOCSTRING")


HEADED = """
import torch
from torch import nn
from transformers import LlamaModel, LlamaPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class HeadedRewardModel(LlamaPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.weights = nn.Linear(config.hidden_size, 2)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        states = self.model(input_ids, attention_mask=attention_mask).last_hidden_state
        rows = torch.arange(len(states))
        last = states[rows, attention_mask.sum(1) - 1]
        mask = attention_mask.unsqueeze(-1)
        first = input_ids.eq(self.config.eos_token_id).int().argmax(-1)
        logits = {logits}
        return SequenceClassifierOutput(logits=logits)
"""
OWN_LOGITS = {
    "cost": "-self.score(last)",
    "mean": "self.score((states * mask).sum(1) / mask.sum(1))",
    "mean without mask": "self.score(states.mean(1))",
    "means and variances": "(self.score(last)[:, ::2] * self.weights(last)).sum(1, keepdim=True)",
    "gate": "(self.score(last)[:, ::2] * self.weights(states[rows, first])).sum(1)",
}
"""As of Beaver's costs, pooled classifiers, URM (a mean and a variance of each attribute, one logit) and ArmoRM."""


@pytest.fixture
def headed(written: Callable[..., Path], classifiers: Folders) -> Callable[[str, int], Path]:
    """`headed(logits, rows)`: a model with a head of that many rows, whose code gives these logits."""

    def write(logits: str, rows: int) -> Path:
        heads = [("score.weight", (rows, 64)), ("weights.weight", (2, 64)), ("weights.bias", (2,))]
        config, weights = llama_with(classifiers(), *heads)
        names = [f"LABEL_{row}" for row in range(rows)]
        labels = {"id2label": dict(enumerate(names)), "label2id": {name: row for row, name in enumerate(names)}}
        auto_map = {"AutoModelForSequenceClassification": "own.HeadedRewardModel"}
        code = HEADED.replace("{logits}", logits)
        return written(code, auto_map, weights, **(config | labels | {"architectures": ["HeadedRewardModel"]}))

    return write


@pytest.mark.parametrize("name", ["cost", *heavy("mean", "mean without mask", "means and variances", "gate")])
def test_a_classifier_is_read_as_its_own_forward_pass_whatever_its_head_gives(
    headed: Callable[[str, int], Path], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = headed(OWN_LOGITS[name], 4 if ":2" in OWN_LOGITS[name] else 1)
    model, groups = load_classifier(str(folder), trust_remote_code=True), make_groups(1)
    remote: Any = AutoModelForSequenceClassification.from_pretrained(str(folder), trust_remote_code=True).eval()
    own = alone(lambda ids: remote(ids, torch.ones_like(ids)).logits, model.template.tokenizer, groups)
    for mode in ("fast", "exact"):
        scored = score(model, groups, mode=mode)
        assert max(differences(scored.scores, own)) < 1e-4
    distinct = sum(len(set(group.responses)) for group in groups)
    assert (work_of(score(model, groups)).batches == distinct) == (name == "mean without mask")
    said = "reads the logits of its own forward pass, which differ from those of its head at the last token"
    assert said in capsys.readouterr().err
    settings = model.record().settings
    assert f"reads {settings['reads']}" == said
    with pytest.raises(LocalError, match=r"reads its tokens by its own forward pass; leave out `read=\.\.\.`\.$"):
        load_classifier(str(folder), trust_remote_code=True, read="last")
    assert settings.get("batches") == (
        "one conversation each, since padding changes its scores" if name == "mean without mask" else None
    )


def test_a_classifier_whose_own_forward_pass_is_its_head_at_the_last_token_stays_packed(
    headed: Callable[[str, int], Path], classifiers: Folders
) -> None:
    model = load_classifier(str(headed("self.score(last)", 1)), trust_remote_code=True)
    assert model.network.unpackable == ""
    assert model.record().settings == {}


@pytest.mark.heavy
def test_code_that_reads_the_last_token_does_so_where_it_is_also_the_padding_token(
    headed: Callable[[str, int], Path],
) -> None:
    folder = headed("self.score(last)", 1)
    change_config(str(folder), pad_token_id=1)
    make_tokenizer(template=TEMPLATE.replace("{{ eos_token }}\n", "{{ eos_token }}")).save_pretrained(folder)
    model, groups = load_classifier(str(folder), trust_remote_code=True), make_groups(1)
    remote: Any = AutoModelForSequenceClassification.from_pretrained(str(folder), trust_remote_code=True).eval()
    own = alone(lambda ids: remote(ids, torch.ones_like(ids)).logits, model.template.tokenizer, groups)
    assert max(differences(score(model, groups).scores, own)) < 1e-4


@pytest.mark.heavy
def test_training_computes_rewards_by_the_own_forward_pass_too(headed: Callable[[str, int], Path]) -> None:
    source = LocalModel(name=str(headed(OWN_LOGITS["cost"], 1)), trust_remote_code=True, device="cpu")
    trainee = load_trainee(source, lora=None, gradient_checkpointing=False, token_budget=None, seed=0)
    template, groups = training_template(source), make_groups(1, number=2)[:2]
    conversations = [tokens for one in tokenize(groups, template, 10**6, "error") for tokens in one.conversations]
    model: Any = AutoModelForSequenceClassification.from_pretrained(source.name, trust_remote_code=True).eval()
    batches = [torch.tensor([list(tokens.ids)]) for tokens in conversations]
    with torch.inference_mode():
        own = torch.cat([model(ids, torch.ones_like(ids)).logits[0] for ids in batches])
    trainee.network.model.train(mode=False)
    assert torch.allclose(rewards_of(trainee, conversations, nullcontext), own, atol=1e-4)
