"""`--device all`: a process for each device, and the files of one process."""

import re
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pluralbench
import pytest
from pluralbench import LocalModel
from pluralbench.config import ScoringConfig
from pluralbench_local import LocalError
from written_tables import write

Rows = list[dict[str, Any]]


def test_without_a_gpu_it_is_refused(
    classifiers: Callable[..., str], pairs: Callable[..., Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pluralbench_local import load

    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    data = write(tmp_path / "pairs.jsonl", pairs(4))
    with pytest.raises(LocalError) as failed:
        pluralbench.score(
            LocalModel(name=classifiers(), device="all"), benchmark="pairs", data=data, out=tmp_path / "r"
        )
    assert str(failed.value) == 'The device all needs a GPU, and this machine has none; set `device="cpu"`.'
    with pytest.raises(LocalError, match=r"^The device all is for runs that score items; choose one device"):
        load(classifiers(), device="all")


@pytest.mark.heavy
def test_the_files_of_a_run_are_those_of_one_process(
    classifiers: Callable[..., str], pairs: Callable[..., Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes on the CPU, each under a name of its own, stand for two GPUs.

    They begin with torch imported, which takes longer than all else; `tests/rewards` starts others from nothing.
    """
    monkeypatch.setattr("pluralbench_runs.workers.get_context", lambda _: get_context("fork"))
    monkeypatch.setattr("pluralbench_local.loading.all_gpus", lambda: ["cpu:0", "cpu:1"])
    monkeypatch.setattr("pluralbench_local.config.DEVICE", re.compile("cpu:0|all"))
    data = write(tmp_path / "pairs.jsonl", pairs(40))
    given: dict[str, Any] = {"benchmark": "pairs", "data": data, "scoring": ScoringConfig(mode="exact")}
    runs = {
        device: pluralbench.score(
            LocalModel(name=classifiers(), device=device, dtype="float32"), out=tmp_path / device, **given
        )
        for device in ("cpu:0", "all")
    }
    for file in ("items.parquet", "metrics.json"):
        here, there = ((tmp_path / device / file).read_bytes() for device in runs)
        assert here == there
    one, all_of_them = (run.result for run in runs.values())
    assert all_of_them.model.device == "cpu:0, cpu:1"
    assert all_of_them.model.model_copy(update={"device": one.model.device}) == one.model
    assert all_of_them.tolerance == one.tolerance
    works = [(r.work.conversations, r.work.unique_tokens, r.work.computed_tokens) for r in (one, all_of_them) if r.work]
    assert works[0] == works[1]
