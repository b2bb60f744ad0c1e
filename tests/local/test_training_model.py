"""What training saves: an ordinary classifier, whole or with adapters merged, that is read at the same token."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from case_marks import heavy
from pluralbench_local import LocalError, LocalModel, LoraOptions, Ranking, Trained, load, score, train, training
from pluralbench_local.conversations import Template
from pluralbench_local.training_batches import tokenize_rankings
from pluralbench_local.training_model import rewards_of, training_template
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Group
from reward_models import (
    ENDS_WITH_EOS,
    EOS,
    TEMPLATE,
    Folders,
    change_config,
    conversation_ids,
    load_classifier,
    load_plainly,
    logits_alone,
    make_tokenizer,
    save_adapter,
    save_language_model,
)
from training_runs import HELD_OUT, QUICK, RANKINGS, SMALL, gradients, options, trainee
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from value_heads import save_value_head

PEFT = pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed: the extra `lora`")


# What is saved


def as_groups(several: Sequence["Ranking"]) -> list[Group]:
    return [Group(ranking.id, ranking.prompt, ranking.responses) for ranking in several]


def accuracy_of(model: Any, several: Sequence["Ranking"]) -> float:
    right = [
        scores[a] > scores[b]
        for scores, ranking in zip(score(model, as_groups(several)).scores, several, strict=True)
        for a, b in pairs_of(ranking.rank)
    ]
    return sum(right) / len(right)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_saved_model_scores_the_same_here_and_in_plain_transformers(trained: "Trained", side: str) -> None:
    model = load_classifier(str(trained.folder))
    assert accuracy_of(model, HELD_OUT) == trained.accuracy
    plain = load_plainly(AutoModelForSequenceClassification, str(trained.folder))
    tokenizer: Any = AutoTokenizer.from_pretrained(trained.folder, padding_side=side)
    for group, scores in zip(as_groups(HELD_OUT), score(model, as_groups(HELD_OUT)).scores, strict=True):
        texts = [
            tokenizer.apply_chat_template([*group.prompt, {"role": "assistant", "content": text}], tokenize=False)
            for text in group.responses
        ]
        inputs = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")
        with torch.no_grad():
            logits = plain(**inputs).logits
        assert logits[:, 0].tolist() == pytest.approx(scores, abs=1e-4)


def test_the_folder_is_an_ordinary_classifier_of_one_logit_without_a_bias(trained: "Trained") -> None:
    names = {path.name for path in trained.folder.iterdir()}
    assert names == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
        "training.json", "log.jsonl", "settings.toml",
    }  # fmt: skip
    model = load_plainly(AutoModelForSequenceClassification, str(trained.folder))
    assert model.config.num_labels == 1
    assert (model.score.weight.shape, model.score.bias) == ((1, 32), None)


@pytest.mark.parametrize("pad", [EOS, None])
def test_a_pad_token_never_ends_a_conversation_or_plain_transformers_would_read_another_token(
    tmp_path: Path, pad: str | None
) -> None:
    base = save_language_model(tmp_path / "base", **SMALL, tokenizer=make_tokenizer(pad=pad, template=ENDS_WITH_EOS))
    change_config(base, pad_token_id=None if pad is None else 1)
    done = train(base, RANKINGS, tmp_path / "out", options=options(epochs=1), device="cpu")
    plain = load_plainly(AutoModelForSequenceClassification, str(done.folder))
    tokenizer: Any = AutoTokenizer.from_pretrained(done.folder)
    assert tokenizer.pad_token_id == plain.config.pad_token_id == 0
    group = as_groups(HELD_OUT)[0]
    rows = [conversation_ids(tokenizer, group, response) for response in group.responses]
    assert {row[-1] for row in rows} == {1}
    inputs = tokenizer.pad({"input_ids": rows}, return_tensors="pt")
    with torch.no_grad():
        together = plain(**inputs).logits[:, 0].tolist()
    assert together == pytest.approx([logits_alone(plain, row)[0] for row in rows], abs=1e-4)


def save_half(folder: Path) -> str:
    """A classifier whose weights are in bfloat16."""
    save_language_model(folder, dtype="bfloat16", **SMALL)
    load_plainly(AutoModelForSequenceClassification, str(folder), "bfloat16").save_pretrained(folder)
    return str(folder)


def test_a_half_precision_base_trains_in_float32_and_is_saved_as_it_was(tmp_path: Path) -> None:
    half = save_half(tmp_path / "half")
    assert {weight.dtype for weight in trainee(half).whole.parameters()} == {torch.float32}

    done = train(half, RANKINGS, tmp_path / "out", held_out=HELD_OUT, options=QUICK, device="cpu")
    model = load_classifier(str(done.folder))
    assert (str(model.network.dtype), done.record["saved_dtype"]) == ("torch.bfloat16", "bfloat16")
    assert accuracy_of(model, HELD_OUT) == pytest.approx(done.accuracy, abs=0.03)


def test_under_autocast_the_head_is_in_float32_and_so_are_the_weights(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a GPU bfloat16 is what runs; a CPU can do it too.
    monkeypatch.setattr(
        training, "accelerator_of", lambda _: Accelerator(mixed_precision="bf16", device_placement=False, cpu=True)
    )
    AcceleratorState._reset_state(reset_partial_state=True)
    head, seen = torch.nn.Linear.forward, set()

    def noticed(self: "torch.nn.Linear", states: "torch.Tensor") -> "torch.Tensor":
        if self.out_features == 1:
            seen.add((states.dtype, self.weight.dtype, torch.is_autocast_enabled("cpu")))
        else:
            assert torch.is_autocast_enabled("cpu")
        return head(self, states)

    monkeypatch.setattr(torch.nn.Linear, "forward", noticed)
    done = train(small, RANKINGS, tmp_path / "out", held_out=HELD_OUT, options=QUICK, device="cpu")
    assert seen == {(torch.float32, torch.float32, False)}
    assert done.record["saved_dtype"] == "float32"
    assert done.accuracy is not None
    assert done.accuracy > 0.9
    monkeypatch.undo()
    assert accuracy_of(load(str(done.folder), device="cpu"), HELD_OUT) == pytest.approx(done.accuracy, abs=0.03)


@pytest.mark.parametrize(("new_head", "deviation"), [("fixed", 0.02), ("by-width", 513**-0.5)])
def test_a_new_head_is_drawn_with_the_deviation_that_was_chosen(
    language_models: Folders, new_head: str, deviation: float
) -> None:
    def drawn() -> Any:
        return trainee(language_models(hidden_size=512, num_hidden_layers=1), new_head=new_head).network.head

    assert drawn().weight.std().item() == pytest.approx(deviation, rel=0.1)
    assert torch.equal(drawn().weight, drawn().weight)


@pytest.mark.parametrize("lora", [None, pytest.param(LoraOptions(rank=4), marks=PEFT)])
def test_gradient_checkpointing_changes_no_gradient(classifiers: Folders, lora: LoraOptions | None) -> None:
    data = tokenize_rankings(RANKINGS[:4], "rankings", Template(make_tokenizer()), 500, "drop")
    conversations = [tokens for several in data.tokens for tokens in several]
    found = []
    for checkpointing in (False, True):
        model = trainee(classifiers(), lora=lora, checkpointing=checkpointing)
        model.whole.train()
        found.append(gradients(model.whole, rewards_of(model, conversations, nullcontext).square().sum()))
    assert found[0].keys() == found[1].keys() != set()
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


# Adapters


@PEFT
def test_adapters_learn_are_merged_and_load_anywhere(small: str, tmp_path: Path) -> None:
    chosen = options(lora=LoraOptions(rank=4), learning_rate=1e-2)
    done = train(small, RANKINGS, tmp_path / "out", held_out=HELD_OUT, options=chosen, device="cpu")
    assert done.accuracy is not None
    assert done.accuracy > 0.8
    model = load(str(done.folder), device="cpu")
    assert accuracy_of(model, HELD_OUT) == done.accuracy
    base = load_plainly(AutoModelForSequenceClassification, small)
    plain = load_plainly(AutoModelForSequenceClassification, str(done.folder))
    before, after = dict(base.named_parameters()), dict(plain.named_parameters())
    assert before.keys() == after.keys()
    changed = {name.split(".")[-2] for name in before if not torch.equal(before[name], after[name])}
    linear = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert changed == linear | {"score"}
    update = after["model.layers.0.mlp.up_proj.weight"] - before["model.layers.0.mlp.up_proj.weight"]
    assert int(torch.linalg.matrix_rank(update, atol=1e-5)) <= 4


@PEFT
def test_adapters_leave_a_half_precision_base_as_it_is(tmp_path: Path) -> None:
    base = save_half(tmp_path / "base")
    chosen = options(epochs=1, lora=LoraOptions(rank=4, target_modules=("q_proj",)), learning_rate=1e-2)
    model = trainee(base, lora=chosen.lora)
    types = {(name.split(".")[2], w.requires_grad, w.dtype) for name, w in model.whole.named_parameters()}
    assert types == {
        ("model", False, torch.bfloat16),
        ("model", True, torch.float32),
        ("score", False, torch.float32),  # the head as it was before training
        ("score", True, torch.float32),
    }
    done = train(base, RANKINGS, tmp_path / "out", held_out=HELD_OUT, options=chosen, device="cpu")
    assert done.record["saved_dtype"] == "bfloat16"
    assert done.accuracy is not None


@PEFT
def test_targets_that_are_not_there_are_said_in_a_sentence(small: str, tmp_path: Path) -> None:
    chosen = options(lora=LoraOptions(target_modules=("nowhere",)))
    with pytest.raises(LocalError, match=r"^LoRA cannot be applied to this model: No modules were targeted"):
        train(small, RANKINGS, tmp_path / "out", options=chosen, device="cpu")


def test_without_peft_the_error_names_the_extra(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    chosen = options(lora=LoraOptions())
    with pytest.raises(LocalError) as failed:
        train(small, RANKINGS, tmp_path / "out", options=chosen, device="cpu")
    assert str(failed.value) == ("LoRA needs an extra: `uv sync --inexact --package pluralbench-local --extra lora`.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("family", "tensor"), [("trl", "v_head.summary.weight"), *heavy(("inf-orm", "score.0.weight"))]
)
def test_a_value_head_is_not_dropped_in_silence(tmp_path: Path, family: str, tensor: str) -> None:
    folder = save_value_head(tmp_path / "base", family)
    with pytest.raises(LocalError) as failed:
        train(folder, RANKINGS, tmp_path / "out", options=options(), device="cpu")
    assert str(failed.value) == (
        f"{folder} has a value head ({tensor}), which training would drop; give the language model that it was trained "
        "from, which gets a new head, or a sequence classifier."
    )


@PEFT
@pytest.mark.heavy
def test_an_adapter_is_not_trained(small: str, tmp_path: Path) -> None:
    folder = save_adapter(tmp_path / "adapter", small, task_type="SEQ_CLS")
    with pytest.raises(LocalError, match="is an adapter"):
        train(str(folder), RANKINGS, tmp_path / "out", options=options(), device="cpu")


@pytest.mark.heavy
def test_a_head_that_is_read_at_eos_is_trained_and_scored_there(tmp_path: Path) -> None:
    """OpenRLHF's, whose base has a template that ends elsewhere."""
    tokenizer = make_tokenizer(template=TEMPLATE.replace("{{ eos_token }}", ""))
    base = save_value_head(tmp_path / "base", "openrlhf", tokenizer=tokenizer)
    template = training_template(LocalModel(name=base))
    assert template.conversation([{"role": "user", "content": "Why?"}], "So.").endswith(f"So. {EOS}")
    done = train(base, RANKINGS, tmp_path / "out", held_out=HELD_OUT, options=options(), device="cpu")
    model = load_classifier(str(done.folder))
    assert model.record().settings["reads"] == "eos, which ends each conversation"
    assert accuracy_of(model, HELD_OUT) == done.accuracy
