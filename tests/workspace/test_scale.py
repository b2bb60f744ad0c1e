"""The benchmark of scale does every step at a tiny size, and the page on scale says what its own code gives."""

import contextlib
import io
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from blocks import blocks
from members import ROOT

PAGE = ROOT / "docs" / "reference" / "scale.md"
FEW = 48


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module, its parts importable; what its steps set in the environment is set back."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return import_module("scale")


@pytest.mark.heavy
def test_every_step_runs_and_stands_in_the_table(scale: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, steps, protocol = (import_module(f"scaling.{name}") for name in ("made", "steps", "protocol"))
    monkeypatch.setattr(made, "SOURCE", 2_000)  # words
    made.make(tmp_path, FEW, 60, 1)
    jobs = {name: protocol.Job(name, FEW, 60, str(tmp_path), "") for name in protocol.STEPS}
    taken = {name: {FEW: steps.run_step(job)} for name, job in jobs.items()}
    table = scale.table(taken).splitlines()
    assert [line.split(":")[0].removeprefix("| ") for line in table[2:]] == [name.split(":")[0] for name in taken]
    assert {line.count("|") for line in table} == {table[0].count("|")}
    written = {name for name, own in taken.items() if own[FEW].files}
    assert written == {name for name, (_, file) in steps.FUNCTIONS.items() if file}
    # Of what other tests of this process took before, the steps know nothing.
    own = {name: {FEW: replace(one[FEW], peak=one[FEW].peak - one[FEW].before)} for name, one in taken.items()}
    assert "Take more than 4 GB: none." in scale.verdict(own)


def test_growth_is_the_exponent_between_the_last_two_sizes(scale: Any) -> None:
    took = import_module("scaling.protocol").Took
    own = {many: took(0, seconds, 0, 5_000_000_000, 0) for many, seconds in ((10, 0.1), (100, 1.0), (1_000, 100.0))}
    assert scale.growth(own) == pytest.approx(2)
    assert scale.growth({10: own[10]}) is None
    said = scale.verdict({"ledger: resume": own})
    assert said == (
        "Grow faster than linearly: ledger: resume.\nTake more than 4 GB: ledger: resume.\n"
        "Exceed their limit of 2 s: ledger: resume."
    )


@pytest.mark.parametrize("code", [block.code for block in blocks(PAGE) if block.language == "python"])
def test_the_arithmetic_of_the_page_gives_what_it_says(code: str) -> None:
    said = [line.removeprefix("# -> ") for line in code.splitlines() if line.startswith("# -> ")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), {})  # noqa: S102 - a page of our own
    assert printed.getvalue().splitlines() == said != []
