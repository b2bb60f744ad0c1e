"""A planner learns from people whose wishes stand in their posts, and its plans help a model that reads plans alone.

A tiny model with random weights, whose tokens are whole words of theirs; see `planned_users` for the people.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pluralbench
import pytest
from planned_users import by_words_told, people
from pluralbench import DataConfig, LocalModel
from pluralbench.config import PlanConfig, PlannerConfig
from pluralbench_policies.planner_options import plan_text, planner_messages
from pluralbench_schemas import render_posts
from printed_tables import LEARNED
from rendered import render
from reward_models import TEMPLATE, make_tokenizer, save_language_model
from verbs import score
from written_tables import write

pytestmark = [pytest.mark.learning, pytest.mark.timeout(3000)]
TAUGHT, PLANNED = 300, 12
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
OPTIONS = PlannerConfig(
    max_steps=30,
    batch_size=12,
    micro_batch_size=12,
    learning_rate=5e-3,
    warmup_steps=1,
    lora_rank=64,
    lora_alpha=64,
    lora_dropout=0,
    lora_target_modules=("embed_tokens", *PROJECTIONS),
    max_length=400,
)
SHORT = PlanConfig(max_tokens=40)
MORE_RECALL, MORE_ACCURACY = 0.5, 0.3
"""By how much the trained planner has to be better than its base, and its plans than nothing told.

The same plan for everyone has a recall of a third.
"""


def asked_by(person: dict[str, Any]) -> str:
    """What a planner reads of a person, but for the order of the posts."""
    return " ".join([person["question"], *sorted(post["text"] for post in person["profile"])])


def save_reader(folder: Path, taught: Sequence[dict[str, Any]]) -> str:
    """A language model with random weights, the tokens of which are those of such prompts and plans; the folder."""
    texts = [
        text
        for row in taught
        for text in (
            *(turn["content"] for turn in planner_messages(row["question"], render_posts(row["profile"]))),
            plan_text([aspect["aspect"] for aspect in row["rubric_aspects"]]),
        )
    ]
    tokenizer = make_tokenizer().train_new_from_iterator(texts, 1000)
    tokenizer.chat_template = TEMPLATE
    sizes: dict[str, Any] = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 32}
    return save_language_model(folder, tokenizer=tokenizer, vocab_size=len(tokenizer), **sizes)


def test_plans_of_a_trained_planner_name_what_people_expect_and_help_whom_they_are_told(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pytest.importorskip("trl", reason="needs the extra `optimize`")
    taught = people(TAUGHT)
    known = {asked_by(person) for person in taught}
    new = [person for person in people(2 * PLANNED, seed=1) if asked_by(person) not in known][:PLANNED]
    base = save_reader(tmp_path / "base", taught)
    data = write(tmp_path / "new.jsonl", new)
    write(tmp_path / "learn.jsonl", taught)
    planner = pluralbench.train_planner(
        LocalModel(name=base, device="cpu"),
        tmp_path / "planner",
        data=DataConfig(location=str(tmp_path / "learn.jsonl")),
        options=OPTIONS,
    )
    plans = {
        name: pluralbench.plan(
            LocalModel(name=str(folder), device="cpu"), data=data, out=tmp_path / f"plans-{name}", sampling=SHORT
        )
        for name, folder in (("base", base), ("trained", planner.folder))
    }
    recall = {name: one.estimate("aspect_recall", matching="words").value for name, one in plans.items()}
    true = [{"id": row["id"], "aspects": [aspect["aspect"] for aspect in row["rubric_aspects"]]} for row in new]
    told: dict[str, dict[str, Any]] = {
        "none": {},
        "base": {"profile": "plan", "plans": plans["base"].path},
        "trained": {"profile": "plan", "plans": plans["trained"].path},
        "true": {"profile": "plan", "plans": write(tmp_path / "true.jsonl", true)},
    }
    runs = {
        name: score(by_words_told, data=data, benchmark="personalized", out=tmp_path / "runs" / name, **how)
        for name, how in told.items()
    }
    accuracy = {name: run.headline.value or 0.0 for name, run in runs.items()}
    for name in plans:
        wanted = f"base + {MORE_RECALL}" if name == "trained" else ""
        record_property(LEARNED, [f"planner: aspect recall, {name}", f"{recall[name] or 0:.3f}", wanted, "1.000"])
    for name, value in accuracy.items():
        wanted = f"none + {MORE_ACCURACY}" if name == "trained" else ""
        record_property(LEARNED, [f"planner: accuracy when told: {name}", f"{value:.3f}", wanted, "1.000"])
    assert (recall["trained"] or 0) > (recall["base"] or 0) + MORE_RECALL
    assert accuracy["trained"] > accuracy["none"] + MORE_ACCURACY
    assert accuracy["trained"] > accuracy["base"] + MORE_ACCURACY
    assert accuracy["true"] == 1.0
    report = render([runs["none"], runs["trained"], runs["true"]], "markdown")
    assert "user context" in str(report)
    assert f"{100 * (accuracy['trained'] - accuracy['none']):+.1f} [" in str(report)
