"""Training a planner: what the loss is of, what it leaves, how it goes on where it was stopped, what it refuses."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from killing import stopped_at
from pluralbench_local import LocalError, Trained, TrainingError
from pluralbench_policies import (
    PlanExample,
    PlannerConfig,
    PolicyError,
    plan_text,
    planner_messages,
    read_plan,
    train_planner,
)
from pluralbench_policies.planner_options import INTRODUCTION
from pluralbench_runs import OutputError, RecipeError, check_recipe
from reward_models import TEMPLATE
from some_words import WORDS
from torch.nn.functional import cross_entropy
from training_runs import log_of, weights
from transformers import AutoModelForCausalLM, AutoTokenizer

EXAMPLES = [
    PlanExample(f"e{place}", planner_messages(f"{word}?", [f"I like {word}."]), plan_text([word, f"more {word}"]))
    for place, word in enumerate(WORDS[:12])
]
HELD_OUT = [PlanExample("h", planner_messages("Tea?", ["I like tea."]), plan_text(["tea", "more tea"]))]
OPTIONS = PlannerConfig(
    max_steps=8,
    batch_size=4,
    micro_batch_size=2,
    learning_rate=1e-2,
    warmup_steps=1,
    eval_steps=4,
    save_steps=3,
    max_length=600,
)


def changed(**values: Any) -> PlannerConfig:
    return PlannerConfig.model_validate(OPTIONS.model_dump() | values)


def run(base: str, out: Path) -> "Trained":
    origin = {"from": "words"}
    return train_planner(base, EXAMPLES, out, held_out=HELD_OUT, options=OPTIONS, origin=origin, device="cpu")


@pytest.fixture(scope="module")
def trained(base: str, tmp_path_factory: pytest.TempPathFactory) -> "Trained":
    """A finished planner, not to be changed."""
    return run(base, tmp_path_factory.mktemp("planner") / "out")


@given(st.lists(st.text("abc-1.) ", min_size=1).filter(str.strip), max_size=6))
def test_what_is_written_as_a_plan_is_read_back(titles: list[str]) -> None:
    once = dict.fromkeys(" ".join(title.split()) for title in titles)
    assert read_plan(plan_text(titles)) == list(once)


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("You want:\n* **Cost**\n• time spent \n", ["Cost", "time spent"]),
        ("1. Cost\n2) Time\n  - Cost", ["Cost", "Time"]),
        ("They want a cheap - and quick - way.", []),
        ("-\n- \n-no space", []),
        ("2024 was dry.\n10 eggs", []),
        ("", []),
    ],
)
def test_a_list_is_what_has_bullets_or_numbers(text: str, titles: list[str]) -> None:
    assert read_plan(text) == titles


def test_the_loss_is_of_the_plans_alone(trained: "Trained", base: str, tmp_path: Path) -> None:
    """At the first step of one item adapters change nothing yet, so that the loss is the base's own."""
    one = changed(max_steps=1, batch_size=1, micro_batch_size=1, warmup_steps=0, lora_dropout=0.0)
    done = train_planner(base, HELD_OUT, tmp_path / "one", options=one, device="cpu")
    auto: Any = AutoModelForCausalLM
    tokenizer: Any = AutoTokenizer.from_pretrained(base)
    model = auto.from_pretrained(base, dtype=torch.float32)
    messages = [dict(message) for message in HELD_OUT[0].messages]
    start = len(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"])
    said = [*messages, {"role": "assistant", "content": HELD_OUT[0].plan}]
    ids = torch.tensor(tokenizer.apply_chat_template(said, return_dict=True)["input_ids"])
    with torch.no_grad():
        logits = model(input_ids=ids[None]).logits[0, start - 1 : -1]
    by_hand = float(cross_entropy(logits, ids[start:]))
    assert log_of(done.folder)[0]["loss"] == pytest.approx(by_hand, rel=1e-4)
    assert trained.record["held_out_loss_of_base"] == pytest.approx(by_hand, rel=1e-4)
    assert done.record["examples"]["plan_tokens"] == len(ids) - start
    assert done.record["held_out"] is done.held_out_loss is None


def test_it_learns_and_leaves_an_ordinary_model(trained: "Trained", base: str) -> None:
    names = {"log.jsonl", "settings.toml", "planner.json", "model.safetensors", "tokenizer.json", "config.json"}
    assert names <= {path.name for path in trained.folder.iterdir()}
    lines = log_of(trained.folder)
    assert [line["step"] for line in lines] == list(range(1, 9))
    assert [line["step"] for line in lines if "held_out_loss" in line] == [4, 8]
    assert lines[-1]["held_out_loss"] == pytest.approx(trained.held_out_loss, rel=1e-4)
    assert trained.held_out_loss is not None
    assert trained.held_out_loss < trained.record["held_out_loss_of_base"] - 0.2
    auto: Any = AutoModelForCausalLM
    model, start = (auto.from_pretrained(folder) for folder in (trained.folder, base))
    assert type(model) is type(start)
    assert model.config.to_dict().keys() == start.config.to_dict().keys()
    assert model.generation_config.pad_token_id == start.generation_config.pad_token_id
    moved = [name for name, weights in model.named_parameters() if not torch.equal(weights, start.get_parameter(name))]
    assert moved
    assert all("q_proj" in name or "v_proj" in name for name in moved)
    tokenizer: Any = AutoTokenizer.from_pretrained(trained.folder)
    assert tokenizer.chat_template == TEMPLATE
    record = json.loads((trained.folder / "planner.json").read_text(encoding="utf-8"))
    assert record == trained.record
    assert record["origin"] == {"from": "words"}
    assert (record["steps"], record["epochs"], record["saved_dtype"]) == (8, pytest.approx(32 / 12), "float32")
    assert record["settings"]["options"]["lora_rank"] == 16


@pytest.mark.heavy
def test_stopped_it_goes_on_to_the_same_weights(trained: "Trained", base: str, tmp_path: Path) -> None:
    from pluralbench_policies.trl_trainers import Steps

    out = tmp_path / "stopped"
    with stopped_at(5, Steps, "on_step_end"):
        run(base, out)
    assert (tmp_path / "stopped.work" / "checkpoint-3").is_dir()
    with pytest.raises(OutputError, match=r"An unfinished run in .*stopped was made with other settings"):
        train_planner(base, EXAMPLES[1:], out, held_out=HELD_OUT, options=OPTIONS, device="cpu")
    done = run(base, out)
    assert log_of(done.folder) == log_of(trained.folder)
    assert weights(done) == weights(trained)
    assert run(base, out).record == done.record


def test_checkpoints_come_by_time_too(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pluralbench_policies.trl_trainers import Steps

    monkeypatch.setattr("pluralbench_local.training_job.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr("pluralbench_local.training_job.SAVING_SHARE", math.inf)
    with stopped_at(3, Steps, "on_step_end"):
        run(base, tmp_path / "stopped")
    assert (tmp_path / "stopped.work" / "checkpoint-2").is_dir()


def test_each_epoch_has_all_items_in_an_order_of_its_own() -> None:
    from pluralbench_policies.planner import _order
    from pluralbench_policies.planner_options import TokenizedExample

    learned = [TokenizedExample(str(place), [0], 0) for place in range(8)]
    order = _order(learned, changed(max_steps=5, batch_size=4))
    assert sorted(order[:8]) == sorted(order[8:16]) == list(range(8))
    assert order[:8] != order[8:16]
    fewer = [place for place in order[:8] if place != 7]
    assert _order(learned[:7], changed(max_steps=5, batch_size=4))[:7] == fewer


def test_what_cannot_be_trained_is_told(base: str, tmp_path: Path) -> None:
    def refused(error: type[Exception], said: str, examples: Any = EXAMPLES, model: str = base, **given: Any) -> None:
        fields: dict[str, Any] = {"options": OPTIONS, "device": "cpu"} | given
        with pytest.raises(error, match=said):
            train_planner(model, examples, tmp_path / "out", **fields)
        assert not (tmp_path / "out").exists()

    refused(PolicyError, r"There are no examples for a planner\.", [])
    refused(PolicyError, r"There are no held-out examples for a planner\.", held_out=[])
    refused(TrainingError, "e0", EXAMPLES[:1] * 2)
    long = r"All 12 examples are longer than 20 tokens \(shortest: \d+\); raise `max_length=...`, or show fewer posts\."
    refused(PolicyError, long, options=changed(max_length=20))
    one = r"The example e\d+ has \d+ tokens, more than 20; raise `max_length=...`, show fewer posts, or set `on_overfl"
    refused(PolicyError, one, options=changed(max_length=20, on_overflow="error"))
    many = r"`max_length=6000` is more than the 1,024 positions of .*; lower it\."
    refused(LocalError, many, options=changed(max_length=6000, on_overflow="error"))
    where = r"Adapters cannot be added to this model \(.*nowhere.*\); set `lora_target_modules=...`\."
    refused(LocalError, where, options=changed(lora_target_modules=("nowhere",)))
    refused(TrainingError, r"Training a planner takes no `kind=...`; leave it out\.", kind="implicit")
    template = tmp_path / "odd.jinja"
    template.write_text("{{ messages | length }}{% if add_generation_prompt %}?{% endif %}", encoding="utf-8")
    refused(PolicyError, r"changes the prompt of the example e0 when the answer is added", chat_template=template)


def test_options_that_cannot_be_are_told() -> None:
    for values, said in (
        ({"batch_size": 5, "micro_batch_size": 2}, "`micro_batch_size=2` does not divide `batch_size=5`"),
        ({"max_steps": 10, "warmup_steps": 10}, "`warmup_steps=10` is not below `max_steps=10`"),
    ):
        with pytest.raises(RecipeError) as error:
            check_recipe(PlannerConfig, values, "of the planner")
        assert said in str(error.value)
    assert PlannerConfig().accumulation == 64
    assert INTRODUCTION in plan_text(["tea"])
