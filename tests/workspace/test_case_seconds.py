"""What the README's command runs stays quick: read from the file that `pytest --case-seconds FILE` wrote."""

import json
import os
from pathlib import Path

import pytest
from case_seconds import BUDGET, LIMIT

FILE = os.environ.get("CASE_SECONDS")


@pytest.mark.skipif(FILE is None, reason="no CASE_SECONDS, the file of a run with --case-seconds")
def test_unmarked_cases_are_quick() -> None:
    rows = [json.loads(line) for line in Path(str(FILE)).read_text(encoding="utf-8").splitlines()]
    unmarked = [row for row in rows if not row["marked"]]
    assert len(unmarked) > 1000, "the file is not that of the whole suite"
    slow = {row["case"]: row["calls"] for row in unmarked if min(row["calls"]) > LIMIT}
    assert not slow, f"longer than {LIMIT} CPU seconds twice in a row; mark them heavy, or make them quicker"
    assert sum(row["seconds"] for row in unmarked) < BUDGET
