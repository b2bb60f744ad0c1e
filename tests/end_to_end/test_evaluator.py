"""The evaluator on real weights: SmolLM2 as an implicit reward model.

As a judge, `test_persona_command` and `tests/rewards/test_judge.py` ask it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from verbs import score, work

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]
IMPLICIT: dict[str, Any] = {"benchmark": "pairs", "device": "cpu", "dtype": "float32", "kind": "implicit"}
PAIR = {
    "prompt": "What can I do with an old newspaper?",
    "chosen": "Fold a hat from it, or keep the pages to wrap glasses in when you move.",
    "rejected": "Newspapers are printed at night, so that readers have them in the morning.",
}


def test_a_language_model_scores_a_pair_alike_in_both_modes(tmp_path: Path) -> None:
    from smollm2 import in_bfloat16

    model, data = in_bfloat16(), tmp_path / "pairs.jsonl"
    data.write_text(json.dumps(PAIR), encoding="utf-8")
    fast, exact = (score(model, data=data, mode=mode, out=tmp_path / mode, **IMPLICIT) for mode in ("fast", "exact"))
    assert [(work(run).strategy, work(run).unpackable) for run in (fast, exact)] == [("fast", ""), ("exact", "")]
    assert fast.items.height == 1
    assert fast.items["outcome"].to_list() == exact.items["outcome"].to_list()
    for name in ("score_chosen", "score_rejected"):
        assert (fast.items[name] - exact.items[name]).abs().max() < 1e-3  # type: ignore[operator]
