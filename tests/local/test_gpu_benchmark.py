"""The benchmark for GPUs, on the CPU at a tiny size: every strategy that can run here runs, and decides alike."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from members import ROOT
from pluralbench_runs import UserError


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return import_module("gpu")


@pytest.mark.heavy
def test_the_table_has_every_strategy(gpu: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "gpu.md"
    gpu.command(rounds=1, model=["1b"], device="cpu", size=1e-4, minutes=1.0, report=report, seed=1)
    lines = report.read_text(encoding="utf-8").splitlines()
    assert capsys.readouterr().out.splitlines() == lines
    assert lines[0].startswith("CPU, float32, 0.0001 times the size; ")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[4:]]
    expected = {(work, name) for work in gpu.WORKLOADS for name in (gpu.FAST, gpu.EXACT, gpu.SDPA, gpu.EMBEDDING)}
    assert {(row[1], row[2]) for row in rows} == expected | {("best-of-4", gpu.TRAINING)}
    assert len(rows) == len(expected) + 1
    for row in rows:
        assert float(row[4].replace(",", "")) > 0
        assert re.fullmatch(r"0 of [1-9]\d*", row[9]) or row[2] in {gpu.EMBEDDING, gpu.TRAINING}
        computed = float(row[6])
        assert computed < 1 if row[2] == gpu.FAST and row[1] == "best-of-16" else computed > 0
        assert row[2] != gpu.EXACT or computed == 1


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_cpu_has_to_be_named(gpu: Any) -> None:
    with pytest.raises(UserError, match=r"^--device cuda: this machine has no GPU; use `--device cpu`\.$"):
        gpu.command(device="cuda")
