"""Accuracy with the same weight for each user."""

from pathlib import Path

import pytest
import verbs
from rendered import render
from written_tables import write


def test_each_user_counts_the_same(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"{user}{n}",
            "user": user,
            "prompt": f"{user} {n}?",
            "chosen": "yes" if right else "n",
            "rejected": "no",
        }
        for user, wins in (("a", [1, 1, 1, 0]), ("b", [0]), ("c", [1, 0]))
        for n, right in enumerate(wins)
    ]
    data = write(tmp_path / "p.jsonl", rows)
    run = verbs.score(verbs.by_length, benchmark="pairs", data=data, out=tmp_path / "run", columns=("cluster=user",))
    number = run.estimate("user_accuracy")
    assert number.value == pytest.approx((3 / 4 + 0 + 1 / 2) / 3)
    assert (number.n, number.clusters) == (3, 3)
    assert number.low is not None
    assert run.headline.value == pytest.approx(4 / 7)
    assert "user accuracy" in str(render([run], "markdown"))
    plain = verbs.score(verbs.by_length, benchmark="pairs", data=data, out=tmp_path / "plain")
    assert plain.estimate("user_accuracy").value is None
