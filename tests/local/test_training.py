"""Training: its loss, what it learns, and what it says of what cannot be done."""

import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from pluralbench_local import LocalError, Trained, TrainingError, train, training
from pluralbench_local.conversations import Template
from pluralbench_local.training import ranking_loss
from pluralbench_local.training_batches import batches, tokenize_rankings
from pluralbench_local.training_job import accelerator_of, read_log
from pluralbench_local.training_model import model_rewards, rewards_of
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Group
from pluralbench_runs import RecipeError
from reward_models import Folders, conversation_ids, load_plainly, make_tokenizer
from torch.nn.functional import logsigmoid
from training_runs import HELD_OUT, QUICK, RANKINGS, gradients, log_of, options, trainee
from transformers import AutoModelForSequenceClassification

# The loss


def test_the_loss_is_the_mean_over_pairs_and_the_regulariser_the_mean_over_responses() -> None:
    rewards = torch.tensor([2.0, 0.5, -1.0, 3.0])  # the last is in no pair
    loss, regulariser = ranking_loss(rewards, [(0, 1), (0, 2), (2, 1)], 0.1)
    by_hand = (math.log(1 + math.exp(-1.5)) + math.log(1 + math.exp(-3)) + math.log(1 + math.exp(1.5))) / 3
    assert float(regulariser) == pytest.approx((4 + 0.25 + 1 + 9) / 4)
    assert float(loss) == pytest.approx(by_hand + 0.1 * (4 + 0.25 + 1 + 9) / 4)


@pytest.mark.parametrize(("architecture", "budget"), [("llama", None), ("bert", 40), *heavy(("gemma2", 40))])
def test_the_gradient_is_that_of_each_pair_by_itself(
    classifiers: Folders, architecture: str, budget: int | None
) -> None:
    folder = classifiers(architecture)
    tokenizer = make_tokenizer()
    data = tokenize_rankings(RANKINGS[:3], "rankings", Template(tokenizer), 500, "drop")
    made = batches(data.rankings, 16, 0, 0)[0]
    ours = trainee(folder, budget=budget)
    ours.whole.eval()
    rewards = rewards_of(ours, [data.tokens[a][b] for a, b in made.members], nullcontext)
    loss, _ = ranking_loss(rewards, made.pairs, 0.1)

    plain = load_plainly(AutoModelForSequenceClassification, folder)

    def alone(member: tuple[int, int]) -> "torch.Tensor":
        ranking = data.rankings[member[0]]
        group = Group(ranking.id, ranking.prompt, ranking.responses)
        ids = conversation_ids(tokenizer, group, ranking.responses[member[1]])
        reward: torch.Tensor = plain(input_ids=torch.tensor([ids])).logits[0, 0]
        return reward

    margins = torch.stack([alone(made.members[better]) - alone(made.members[worse]) for better, worse in made.pairs])
    naive = -logsigmoid(margins).mean() + 0.1 * torch.stack([alone(member) ** 2 for member in made.members]).mean()
    assert loss.item() == pytest.approx(naive.item(), rel=1e-5)
    expected, found = gradients(plain, naive), gradients(ours.whole, loss)
    assert expected.keys() == found.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-5)


# Learning


def test_it_learns_what_makes_a_response_better(trained: "Trained") -> None:
    lines = log_of(trained.folder)
    assert trained.accuracy is not None
    assert trained.accuracy > 0.9
    assert lines[0]["loss"] > lines[-1]["loss"]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["step"] for line in lines if "held_out_accuracy" in line] == list(range(2, len(lines) + 1, 2))
    untrained = trainee(trained.record["settings"]["model"]["name"])
    data = tokenize_rankings(HELD_OUT, "rankings", Template(make_tokenizer()), 500, "drop")
    before = training._accuracy(untrained, model_rewards(untrained, accelerator_of(torch.device("cpu"))), data)
    assert trained.accuracy > before + 0.2


def test_the_rate_rises_and_falls_and_the_log_has_what_a_step_took(trained: "Trained") -> None:
    lines = read_log(trained.folder)
    rates = [line["learning_rate"] for line in lines]
    assert rates[0] == 0
    assert max(rates) == pytest.approx(QUICK.learning_rate)
    assert rates[-1] < QUICK.learning_rate / 3
    last = lines[-1]
    assert last["of"] == len(lines) == trained.record["steps"]
    assert last["responses_per_second"] == pytest.approx(last["responses"] / last["seconds"])
    assert 0 <= last["accuracy"] <= 1
    assert last["regulariser"] > 0
    assert sum(line["pairs"] for line in lines) == sum(epoch["pairs"] for epoch in trained.record["epochs"])
    assert sum(line["responses"] for line in lines) == sum(epoch["responses"] for epoch in trained.record["epochs"])


def test_the_record_says_what_was_trained_on_what(trained: "Trained") -> None:
    record = trained.record
    assert record == json.loads((trained.folder / "training.json").read_text(encoding="utf-8"))
    responses = sum(len(ranking.responses) for ranking in RANKINGS)
    assert record["data"]["rankings"] == 20
    assert record["data"]["responses"] == responses
    assert [epoch["pairs"] for epoch in record["epochs"]] == [record["data"]["pairs"]] * 2
    assert [epoch["pairs_lost"] for epoch in record["epochs"]] == [0, 0]
    assert record["held_out"]["rankings"] == 12
    assert record["settings"]["options"]["learning_rate"] == QUICK.learning_rate
    assert len(record["settings"]["data"]) == 64
    assert record["architecture"] == "LlamaForSequenceClassification"
    assert (record["device"], record["saved_dtype"]) == ("cpu", "float32")


def test_a_step_of_several_batches_has_the_mean_of_their_gradients(small: str, tmp_path: Path) -> None:
    def first(size: int, accumulation: int) -> dict[str, Any]:
        chosen = options(
            epochs=1, batch_size=size, gradient_accumulation_steps=accumulation, center_rewards_coefficient=0.5
        )
        out = tmp_path / f"{size}-{accumulation}"
        train(small, RANKINGS, out, options=chosen, device="cpu")
        return log_of(out)[0]

    # The first step of rate 0 shows the same weights to both.
    one, two = first(8, 1), first(8, 2)
    assert two["responses"] > one["responses"]
    data = tokenize_rankings(RANKINGS, "rankings", Template(make_tokenizer()), 500, "drop")
    model = trainee(small)
    losses = []
    for batch in batches(data.rankings, 8, 0, 0)[:2]:
        rewards = rewards_of(model, [data.tokens[a][b] for a, b in batch.members], nullcontext)
        losses.append(ranking_loss(rewards, batch.pairs, 0.5)[0])
    assert one["loss"] == pytest.approx(losses[0].item())
    assert two["loss"] == pytest.approx((losses[0] + losses[1]).item() / 2)
    mean = gradients(model.whole, (losses[0] + losses[1]) / 2)
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in mean.values()))
    assert two["gradient_norm"] == pytest.approx(norm, rel=1e-4)


# What cannot be done


def failing(base: str, out: Path, **changed: Any) -> str:
    with pytest.raises(LocalError) as failed:
        train(base, RANKINGS, out, options=options(**changed), device="cpu")
    return str(failed.value)


def test_too_few_pairs_for_a_step_after_the_warm_up_are_said_in_a_sentence(small: str, tmp_path: Path) -> None:
    pairs = sum(len(pairs_of(ranking.rank)) for ranking in RANKINGS)
    assert failing(small, tmp_path / "out", gradient_accumulation_steps=100) == (
        f"{pairs} pairs are too few to train on: the warm-up takes all steps (1); lower `batch_size=...`, "
        "`gradient_accumulation_steps=...` or `warmup_ratio=...`, or raise `epochs=...`."
    )
    assert list(tmp_path.iterdir()) == []


def test_more_tokens_than_the_model_has_positions_for_are_said_in_a_sentence(
    language_models: Folders, tmp_path: Path
) -> None:
    base = language_models("gpt2", n_positions=64)
    assert failing(base, tmp_path / "out") == (f"`max_length=500` is more than the 64 positions of {base}; lower it.")


def test_a_base_with_missing_weights_is_refused(small: str, tmp_path: Path) -> None:
    model = load_plainly(AutoModelForSequenceClassification, small)
    del model.model.norm
    model.save_pretrained(tmp_path / "base")
    make_tokenizer().save_pretrained(tmp_path / "base")
    sentence = failing(str(tmp_path / "base"), tmp_path / "out")
    assert "has no weights for model.norm.weight, which are not part of the head; save the whole model." in sentence


def test_a_classifier_of_several_logits_is_refused(classifiers: Folders, tmp_path: Path) -> None:
    base = classifiers(num_labels=3)
    assert failing(base, tmp_path / "out") == (
        f"The score.weight of {base} has another shape than in a classifier of one logit; give such a classifier, or a "
        "language model."
    )


def test_what_training_has_no_use_for_is_refused(small: str, tmp_path: Path) -> None:
    described: dict[str, Any] = {"kind": "implicit", "label": "logit:0", "dtype": "float16"}
    for name, value in described.items():
        with pytest.raises(TrainingError, match=rf"^Training a reward model takes no `{name}=\.\.\.`; leave it out"):
            train(small, RANKINGS, tmp_path / "out", options=QUICK, **{name: value})
    with pytest.raises(RecipeError, match="reference"):
        train(small, RANKINGS, tmp_path / "out", options=QUICK, reference=small)
    assert list(tmp_path.iterdir()) == []
