"""The evaluator on real weights: SmolLM2 as an implicit reward model.

As a judge, `test_persona_command` and `tests/rewards/test_judge.py` ask it.
"""

from pathlib import Path
from typing import Any

import pytest
from samples import sample
from verbs import score, work

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]
ONE_ITEM: dict[str, Any] = {
    "configs": ["Art_and_Entertainment"],
    "limit": 1,
    "device": "cpu",
    "dtype": "float32",
    "kind": "implicit",
    "profile": "none",
}


@pytest.fixture(scope="module")
def release() -> Path:
    return sample("build-personalized").release


def test_a_language_model_scores_the_sample_alike_in_both_modes(release: Path, tmp_path: Path) -> None:
    from smollm2 import in_bfloat16

    model = in_bfloat16()
    fast, exact = (score(model, data=release, mode=mode, out=tmp_path / mode, **ONE_ITEM) for mode in ("fast", "exact"))
    assert [(work(run).strategy, work(run).unpackable) for run in (fast, exact)] == [("fast", ""), ("exact", "")]
    assert fast.items.height == 1
    assert fast.items["outcome"].to_list() == exact.items["outcome"].to_list()
    for name in ("score_chosen", "score_rejected"):
        assert (fast.items[name] - exact.items[name]).abs().max() < 1e-3  # type: ignore[operator]
