"""Training the head alone: the base stays as it is, each response is encoded once, and the rest is as ever."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from killing import stopped_at
from pluralbench_local import (
    LocalError,
    LoraOptions,
    Ranking,
    Trained,
    TrainingConfig,
    batches,
    load,
    score,
    train,
    training,
)
from pluralbench_local.network import read_packed
from pluralbench_local.training_model import model_rewards
from pluralbench_rewards import Group
from pluralbench_runs import RecipeError, check_recipe
from reward_models import Folders, save_classifier
from safetensors.torch import load_file
from training_runs import HELD_OUT, RANKINGS, log_of, options, trainee, weights

HEAD = options(
    trainable="head", epochs=15, learning_rate=0.05, gradient_accumulation_steps=1, center_rewards_coefficient=0.01
)


def run(base: str, out: Path, **changed: Any) -> "Trained":
    chosen = HEAD.model_copy(update=changed)
    return train(base, RANKINGS, out, held_out=HELD_OUT, options=chosen, device="cpu")


def test_the_head_alone_changes_and_learns(small: str, tmp_path: Path) -> None:
    done = run(small, tmp_path / "out")
    base, made = load_file(Path(small) / "model.safetensors"), load_file(done.folder / "model.safetensors")
    same = [name for name in made if name != "score.weight"]
    assert len(same) > 5
    assert all(torch.equal(base[name], made[name]) for name in same)
    head: Any = trainee(small).network.head
    assert not torch.equal(head.weight, made["score.weight"])
    lines = log_of(done.folder)
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.1
    assert done.accuracy is not None
    assert done.accuracy > 0.6


def test_it_takes_the_steps_that_training_a_frozen_base_takes(
    language_models: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step by `train` has the gradient that the head has where the whole model is encoded for it."""
    base = language_models("gpt2", n_layer=1, n_embd=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    once = run(base, tmp_path / "once", epochs=2)
    uncached: Any = SimpleNamespace(autocast=nullcontext)
    monkeypatch.setattr(training, "head_rewards", lambda trainee, *_: model_rewards(trainee, uncached))
    again = run(base, tmp_path / "again", epochs=2)
    one, other = (load_file(done.folder / "model.safetensors")["score.weight"] for done in (once, again))
    assert torch.allclose(one, other, atol=1e-5)
    assert once.accuracy == again.accuracy


def different(rankings: Sequence["Ranking"]) -> int:
    """How many different conversations their pairs have."""
    return len(
        {(str(one.prompt), one.responses[side]) for one in rankings for pair in one.pairs_to_learn() for side in pair}
    )


def test_each_conversation_is_encoded_once_for_all_epochs(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []

    def counted(network: Any, packed: Any, kept: Any) -> Any:
        encoded.append(len(packed.rows))
        return read_packed(network, packed, kept)

    monkeypatch.setattr(batches, "read_packed", counted)
    twice = [*RANKINGS, *(replace(one, id=f"{one.id}, again") for one in RANKINGS)]
    chosen = HEAD.model_copy(update={"epochs": 5, "token_budget": 512})
    done = train(small, twice, tmp_path / "out", held_out=HELD_OUT, options=chosen, device="cpu")
    assert sum(encoded) == different([*RANKINGS, *HELD_OUT])
    assert len(encoded) > 3  # progress shows between two batches
    assert done.record["encoding_seconds"] > 0


def test_stopped_it_ends_in_the_same_weights(small: str, tmp_path: Path) -> None:
    whole = run(small, tmp_path / "whole", epochs=3)
    with stopped_at(8, training, "_step"):
        run(small, tmp_path / "stopped", epochs=3)
    kept = list((tmp_path / "stopped.work").glob("checkpoint-*/*.safetensors"))
    assert len(kept) == 1
    assert kept[0].stat().st_size < 1000  # the head alone
    stopped = run(small, tmp_path / "stopped", epochs=3)
    assert weights(stopped) == weights(whole)
    assert log_of(stopped.folder) == log_of(whole.folder)


def test_a_classifiers_own_head_goes_on(classifiers: Folders, tmp_path: Path) -> None:
    base = classifiers()
    done = run(base, tmp_path / "out", epochs=1, learning_rate=1e-9)
    group = Group("q", RANKINGS[0].prompt, RANKINGS[0].responses)
    before, after = (score(load(folder, device="cpu"), [group]).scores[0] for folder in (base, str(done.folder)))
    assert after == pytest.approx(before, abs=1e-4)


def test_an_encoder_that_pools_by_itself_has_no_head_to_train_alone(tmp_path: Path) -> None:
    base = save_classifier(tmp_path / "bert", "bert")
    with pytest.raises(
        LocalError, match=r"The head of .*bert cannot be trained alone, since the model pools by itself"
    ):
        run(base, tmp_path / "out")


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"freezes the base, so it cannot be combined with `lora="):
        check_recipe(TrainingConfig, {"trainable": "head", "lora": {"rank": 4}}, "x")
    with pytest.raises(RecipeError, match="'16' is not of the form RANK/ALPHA, such as 16/32"):
        check_recipe(TrainingConfig, {"lora": "16"}, "x")
    assert TrainingConfig.model_validate({"lora": "8/16"}).lora == LoraOptions(rank=8, alpha=16)
