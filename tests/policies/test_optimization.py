"""Policy optimisation: what it learns, what it leaves, and that it goes on where it was stopped."""

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch
from case_marks import heavy
from killing import stopped_at
from optimized_runs import LETTERS, TASKS, quick
from pluralbench_policies import optimize
from pluralbench_policies.scorer import Scorer, draw_curves
from pluralbench_rewards import FunctionModel, Group
from pluralbench_runs import OutputError
from reward_models import save_classifier, save_language_model, user
from training_runs import log_of, weights
from transformers import AutoModelForCausalLM, AutoTokenizer

Runs = Callable[[str], Any]
each_algorithm = pytest.mark.parametrize("algorithm", ["rloo", "ppo", *heavy("grpo")])
one_of_each_kind = pytest.mark.parametrize("algorithm", ["ppo", *heavy("rloo")])  # GRPO goes the way of RLOO


@each_algorithm
def test_the_mean_reward_rises(optimized: Runs, algorithm: str) -> None:
    lines = log_of(optimized(algorithm).folder)
    assert [line["step"] for line in lines] == list(range(1, 7))
    assert fmean(line["reward"] for line in lines[-2:]) > fmean(line["reward"] for line in lines[:2]) + 0.5


@each_algorithm
def test_the_folder_is_an_ordinary_policy_with_what_happened(optimized: Runs, base: str, algorithm: str) -> None:
    done = optimized(algorithm)
    names = {"log.jsonl", "settings.toml", "curves.png", "optimization.json", "model.safetensors", "tokenizer.json"}
    assert names <= {path.name for path in done.folder.iterdir()}
    auto: Any = AutoModelForCausalLM
    model, start = (auto.from_pretrained(folder) for folder in (done.folder, base))
    assert any(not torch.equal(a, b) for a, b in zip(model.parameters(), start.parameters(), strict=True))
    assert model.config.to_dict().keys() == start.config.to_dict().keys()
    assert model.generation_config.pad_token_id == start.generation_config.pad_token_id
    tokenizer: Any = AutoTokenizer.from_pretrained(done.folder)
    assert tokenizer.apply_chat_template(user("hi"), tokenize=False).startswith("<s><|user|>")
    record = json.loads((done.folder / "optimization.json").read_text(encoding="utf-8"))
    assert record == done.record
    assert record["settings"]["reward"]["name"] == "letters"
    assert record["settings"]["policy"]["kind"] == "policy"
    assert record["tasks"] == {"given": 10, "too_long": 0}
    assert (record["steps"], record["prompts"], record["completions"]) == (6, 48, 192)
    assert (record["failed_scores"], record["warnings"]) == (0, [])


def test_the_curves_are_drawn_from_the_log(optimized: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(optimized("ppo").folder / "log.jsonl", tmp_path)
    monkeypatch.undo()
    draw_curves(tmp_path)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@each_algorithm
def test_a_line_says_how_long_how_sure_and_how_far_the_policy_is(optimized: Runs, algorithm: str) -> None:
    lines = log_of(optimized(algorithm).folder)
    measured = [line["step"] for line in lines if "kl" in line]
    assert measured == [3, 6]
    assert lines[5]["kl"] > lines[2]["kl"] > 0
    assert lines[0]["entropy"] == pytest.approx(5.9, abs=0.3)  # of some 500 tokens, nearly alike at first
    assert lines[-1]["entropy"] < lines[0]["entropy"]
    assert all(0 < line["length"] <= 12 and 0 <= line["ended"] <= 1 and line["failed"] == 0 for line in lines)
    assert ("value_loss" in lines[0]) == (algorithm == "ppo")


# Interrupted


@pytest.mark.heavy
@one_of_each_kind
def test_stopped_twice_it_ends_in_the_same_weights(optimized: Runs, base: str, tmp_path: Path, algorithm: str) -> None:
    whole, out = optimized(algorithm), tmp_path / "stopped"

    def run() -> Any:
        return optimize(base, LETTERS, TASKS, out, options=quick(algorithm), device="cpu")

    for call, saved in ((4, "checkpoint-2"), (3, "checkpoint-4")):
        with stopped_at(call, Scorer, "__call__"):
            run()
        assert not out.exists()
        assert [path.name for path in (tmp_path / "stopped.work").glob("checkpoint*")] == [saved]
    done = run()
    assert log_of(done.folder) == log_of(whole.folder)
    assert weights(done) == weights(whole)
    assert not (tmp_path / "stopped.work").exists()


def test_what_was_made_by_other_settings_is_refused_by_name(optimized: Runs, base: str) -> None:
    out = optimized("rloo").folder
    cases: dict[str, dict[str, Any]] = {
        "kl_coef": {"options": quick("rloo", kl_coef=0.1)},
        "tasks": {"tasks": [*TASKS[:-1], replace(TASKS[-1], messages=user("something else"))]},
        "reward.name": {"reward": FunctionModel(lambda groups: [[1.0] * len(group.responses) for group in groups])},
    }
    for key, changed in cases.items():
        given: dict[str, Any] = {
            "policy": base,
            "reward": LETTERS,
            "tasks": TASKS,
            "out": out,
            "options": quick("rloo"),
        } | changed
        with pytest.raises(OutputError) as failed:
            optimize(**given, device="cpu")
        assert f"other settings ({key} " in str(failed.value)


# Scores


def recorded(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> list[Any]:
    """The advantages that TRL makes of the rewards, by step."""
    from pluralbench_policies import trl_trainers

    kind: Any = {"rloo": trl_trainers._Rloo, "grpo": trl_trainers._Grpo}[algorithm]
    generate, seen = kind._generate_and_score_completions, []

    def keeping(self: Any, inputs: Any) -> Any:
        made = generate(self, inputs)
        seen.append(made["advantages"].tolist())
        return made

    monkeypatch.setattr(kind, "_generate_and_score_completions", keeping)
    return seen


NAN = math.nan
SCORES = [[3.0, NAN, 1.0, 2.0], [NAN, NAN, 5.0, NAN], [NAN] * 4, [1.0, math.inf, -1.0, 0.5]]
USED = [[score for score in row if math.isfinite(score)] for row in SCORES]


def in_turn(groups: Sequence[Group]) -> list[list[float]]:
    """These scores, whatever the responses are."""
    return [SCORES[int(group.id.removeprefix("t")) % 4] for group in groups]


@pytest.mark.parametrize("algorithm", ["rloo", "grpo"])
def test_a_failed_score_is_no_reward_and_does_not_count_for_the_others(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    seen, options = recorded(monkeypatch, algorithm), quick(algorithm, batch_size=4, max_steps=1, reward_divisor=10)
    done = optimize(base, FunctionModel(in_turn), TASKS[:4], tmp_path / "out", options=options, device="cpu")

    def advantage(score: float, used: Sequence[float]) -> float:
        if not math.isfinite(score) or len(used) == 1:
            return 0.0
        own = score / 10
        if algorithm == "rloo":  # less the mean of the others
            return own - (sum(used) / 10 - own) / (len(used) - 1)
        return (own - fmean(used) / 10) / (stdev(used) / 10 + 1e-4)

    expected = [[advantage(score, used) for score in row] for row, used in zip(SCORES, USED, strict=True)]
    if algorithm == "rloo":  # of 3, 1 and 2 tenths; the others' mean is 1.5, 2.5 and 2
        assert expected[0] == pytest.approx([0.15, 0, -0.15, 0])
    [flat] = seen
    found = [flat[begin : begin + 4] for begin in range(0, 16, 4)]
    assert sorted(map(sorted, found)) == [
        pytest.approx(row, abs=1e-5) for row in sorted(map(sorted, expected))
    ]  # in the order of the step's prompts
    [line] = log_of(done.folder)
    finite = [score for row in USED for score in row]
    assert line["failed"] == 16 - len(finite) == 9
    assert line["reward"] == pytest.approx(fmean(finite))  # as the reward model gave it, before it is divided
    assert done.record["failed_scores"] == 9
    assert done.record["warnings"] == ["9 completions got no finite score and were ignored."]
    assert all(math.isfinite(value) for value in line.values())


@one_of_each_kind
def test_all_completions_of_a_prompt_are_one_group_that_the_reward_model_gets(
    base: str, tmp_path: Path, algorithm: str
) -> None:
    given: list[list[Group]] = []

    def watching(groups: Sequence[Group]) -> list[list[float]]:
        given.append(list(groups))
        return [[float(len(response)) for response in group.responses] for group in groups]

    tasks = [replace(task, group=replace(task.group, context=[f"likes {task.group.id}"])) for task in TASKS]
    options = quick(algorithm, max_steps=2)
    optimize(base, FunctionModel(watching), tasks, tmp_path / "out", options=options, device="cpu")
    assert [len(groups) for groups in given] == [8, 8]
    for group in given[0]:
        assert len(group.responses) == 4
        assert group.context == [f"likes {group.id}"]
        assert not any("</s>" in response for response in group.responses)
    first, second = ({group.id for group in groups} for groups in given)
    assert first != second


@one_of_each_kind
def test_a_reward_that_is_always_the_same_changes_nothing_and_is_said(
    base: str, tmp_path: Path, algorithm: str
) -> None:
    same = FunctionModel(lambda groups: [[2.0] * len(group.responses) for group in groups])
    done = optimize(
        base, same, TASKS, tmp_path / "out", options=quick(algorithm, max_steps=2, kl_steps=1), device="cpu"
    )
    said = "all completions got the same score, so there was nothing to learn"
    assert done.record["warnings"] == [f"In 2 of 2 steps {said}."]
    lines = log_of(done.folder)
    assert [line["warning"] for line in lines] == [said] * 2
    assert [line["reward_std"] for line in lines] == [0, 0]
    if algorithm != "ppo":  # whose critic learns meanwhile, so that later advantages are not quite 0
        assert [line["kl"] for line in lines] == pytest.approx([0, 0], abs=1e-6)


@one_of_each_kind
def test_a_weight_of_the_divergence_holds_the_policy_back(
    optimized: Runs, base: str, tmp_path: Path, algorithm: str
) -> None:
    options = quick(algorithm, kl_coef=1.0, max_steps=3)
    held = optimize(base, LETTERS, TASKS, tmp_path / "out", options=options, device="cpu")
    assert log_of(held.folder)[2]["kl"] < log_of(optimized(algorithm).folder)[2]["kl"]


def test_a_reward_model_in_this_process_scores_a_step(base: str, tmp_path: Path) -> None:
    from pluralbench_local import load

    reward = load(save_classifier(tmp_path / "reward", num_hidden_layers=1), device="cpu")
    options = quick("rloo", max_steps=1)
    done = optimize(base, reward, TASKS, tmp_path / "out", options=options, device="cpu")
    assert done.record["settings"]["reward"]["kind"] == "classifier"
    assert log_of(done.folder)[0]["reward_std"] > 0


# What is seen of it


def test_epochs_use_each_prompt_once_and_in_another_order(base: str, tmp_path: Path) -> None:
    given: list[str] = []

    def watching(groups: Sequence[Group]) -> list[list[float]]:
        given.extend(group.id for group in groups)
        return LETTERS.function(groups)  # type: ignore[return-value]

    options = quick(
        "rloo",
        max_steps=None,
        epochs=3,
        batch_size=5,
        mini_batch_size=5,
        num_generations=2,
        micro_batch_size=10,
    )
    optimize(base, FunctionModel(watching), TASKS, tmp_path / "out", options=options, device="cpu")
    epochs = [given[begin : begin + 10] for begin in range(0, 30, 10)]
    assert len(given) == 30
    assert all(set(epoch) == {task.group.id for task in TASKS} for epoch in epochs)
    assert all(a != b for a, b in pairwise(epochs))


@pytest.mark.heavy
def test_weights_that_are_tied_and_positions_that_are_learned(tmp_path: Path) -> None:
    """A checkpoint holds tied weights once, and padding on the left must not move what is embedded by position."""
    base = save_language_model(tmp_path / "gpt2", "gpt2", n_layer=1, n_embd=32, tie_word_embeddings=True)
    options = quick("ppo", max_steps=2, save_steps=1)
    whole = optimize(base, LETTERS, TASKS, tmp_path / "whole", options=options, device="cpu")
    with stopped_at(2, Scorer, "__call__"):
        optimize(base, LETTERS, TASKS, tmp_path / "out", options=options, device="cpu")
    done = optimize(base, LETTERS, TASKS, tmp_path / "out", options=options, device="cpu")
    assert weights(done) == weights(whole)


@pytest.mark.heavy
def test_the_same_seed_samples_the_same_and_another_does_not(optimized: Runs, base: str, tmp_path: Path) -> None:
    rloo, grpo = (log_of(optimized(algorithm).folder)[0]["reward"] for algorithm in ("rloo", "grpo"))
    assert rloo == grpo
    other = optimize(base, LETTERS, TASKS, tmp_path / "other", options=quick("grpo", seed=1, max_steps=1), device="cpu")
    assert log_of(other.folder)[0] != log_of(optimized("grpo").folder)[0]
