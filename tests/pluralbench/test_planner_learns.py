"""A planner learns from people whose wishes stand in their posts, and its plans help a model that reads plans alone.

SmolLM2-135M on a CPU, some 40 s of it; see `planned_users` for the people.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluralbench
import pytest
from planned_users import by_words_told, people
from pluralbench import DataConfig, LocalModel
from pluralbench.config import PlanConfig, PlannerConfig
from printed_tables import LEARNED
from rendered import render
from verbs import score
from written_tables import write

pytestmark = [pytest.mark.learning, pytest.mark.timeout(3000)]
TAUGHT, PLANNED = 24, 8
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
OPTIONS = PlannerConfig(
    max_steps=12,
    batch_size=2,
    micro_batch_size=2,
    learning_rate=5e-3,
    warmup_steps=1,
    lora_target_modules=TARGETS,
    max_length=400,
)
SHORT = PlanConfig(max_tokens=24)
MORE_RECALL, MORE_ACCURACY = 0.3, 0.15
"""By how much the trained planner has to be better than its base, and its plans than nothing told."""


def test_plans_of_a_trained_planner_name_what_people_expect_and_help_whom_they_are_told(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pytest.importorskip("trl", reason="needs the extra `optimize`")
    pytest.importorskip("gguf", reason="the embedded model is not installed as weights")
    from smollm2 import in_bfloat16

    base = in_bfloat16()
    new = people(PLANNED, seed=1)
    data = write(tmp_path / "new.jsonl", new)
    write(tmp_path / "learn.jsonl", people(TAUGHT))
    planner = pluralbench.train_planner(
        LocalModel(name=str(base), device="cpu"),
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
