"""Small releases, written for real."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from commands import in_process
from pluralbench_release import Builder, ReleaseRecipe, write
from pluralbench_release.cli import main
from pluralbench_schemas import POST, RUBRIC_ASPECT
from releases import TEXTS, contents_of, key_of, write_ledger


class TinyRecipe(ReleaseRecipe):
    """What these releases were asked to be."""

    note: str = "中文"


def _pair(row_id: str, number: int, changes: dict[str, Any]) -> dict[str, Any]:
    text = TEXTS[number % len(TEXTS)]
    row = {
        "id": row_id,
        "question": f"{text}?",
        "category": "Art",
        "narrative": text,
        "rubric_aspects": [{"aspect": text, "evidence": text[:3], "reason": None}],
        "profile": [{"id": "p1", "category": None, "text": text}, {"id": "p2", "category": "Art", "text": "post"}],
        "chosen": f"Yes: {text}",
        "rejected": f"No: {text}",
        "generator": "model",
        "prompt_version": "1",
        "chosen_call": key_of(f"chosen {row_id}"),
        "rejected_call": key_of(f"rejected {row_id}"),
    }
    return row | changes


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run `pluralbench-release` with these words in this process; gives its exit status and what it wrote."""
    return in_process("pluralbench-release", main, monkeypatch, capsys)


@pytest.fixture(scope="session")
def pairs() -> Callable[..., pl.DataFrame]:
    """`pairs("q1", "q2", chosen="x")`: rows of `PERSONALIZED_PAIRS` with these ids and changes."""

    def make(*ids: str, **changes: Any) -> pl.DataFrame:
        rows = [_pair(row_id, number, changes) for number, row_id in enumerate(ids)]
        nested = {"rubric_aspects": pl.List(RUBRIC_ASPECT), "profile": pl.List(POST)}
        return pl.DataFrame(rows, schema={name: nested.get(name, pl.String) for name in _pair("", 0, {})})

    return make


@pytest.fixture
def release(tmp_path: Path, pairs: Callable[..., pl.DataFrame]) -> Callable[..., Path]:
    """`release("a", frame, ...)`: a release in `tmp_path / "a"`, a config for each frame (two without any).

    Further words are those of `contents_of`.
    """

    def make(
        name: str = "release",
        *frames: pl.DataFrame,
        configs: Sequence[str] = ("Art", "no", "Society"),
        builder: str = "nobody",
        title: str | None = None,
        **more: Any,
    ) -> Path:
        frames = frames or (pairs("q1", "q2", "q3", "q4"), pairs("ש1", "中2"))
        directory = tmp_path / name
        directory.mkdir(parents=True)
        contents = contents_of(zip(configs, frames, strict=False), **more)
        recipe, made_by = TinyRecipe(name="tiny", title=title), Builder(builder, "pluralbench-release")
        calls = write_ledger(tmp_path / "ledger.parquet", *frames)
        write(directory, contents, recipe=recipe, builder=made_by, ledger=calls)
        return directory

    return make
