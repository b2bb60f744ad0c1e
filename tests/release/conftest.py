"""Small releases, written for real."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from commands import in_process
from pluralbench_release import Builder, Card, Contents, ReleaseRecipe, ReleaseTable, Section, Source, write
from pluralbench_release.cli import main
from pluralbench_schemas import POST, RUBRIC_ASPECT

TEXTS = ["我喜欢喝“龙井”茶。", "أحب الشاي الأخضر וגם תה", "मैं चाय पीता हूँ 🍵👨‍👩‍👧", "\u202eright to left\u202c\ttab\r\n"]


class TinyRecipe(ReleaseRecipe):
    """What these releases were asked to be."""

    note: str = "中文"


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
        "chosen_call": _key(f"chosen {row_id}"),
        "rejected_call": _key(f"rejected {row_id}"),
    }
    return row | changes


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run `pluralbench-release` with these words in this process; gives its exit status and what it wrote."""
    return in_process("pluralbench-release", main, monkeypatch, capsys)


@pytest.fixture(scope="session")
def pairs() -> Callable[..., pl.DataFrame]:
    """`pairs("q1", "q2", chosen="x")`: rows of `PersonalizedPairs` with these ids and changes."""

    def make(*ids: str, **changes: Any) -> pl.DataFrame:
        rows = [_pair(row_id, number, changes) for number, row_id in enumerate(ids)]
        nested = {"rubric_aspects": pl.List(RUBRIC_ASPECT), "profile": pl.List(POST)}
        return pl.DataFrame(rows, schema={name: nested.get(name, pl.String) for name in _pair("", 0, {})})

    return make


@pytest.fixture
def release(tmp_path: Path, pairs: Callable[..., pl.DataFrame]) -> Callable[..., Path]:
    """`release("a", frame, ...)`: a release in `tmp_path / "a"`, a config for each frame (two without any)."""

    def make(
        name: str = "release",
        *frames: pl.DataFrame,
        licences: Sequence[str] = ("cc-by-4.0",),
        configs: Sequence[str] = ("Art", "no", "Society"),
        builder: str = "nobody",
        title: str | None = None,
    ) -> Path:
        frames = frames or (pairs("q1", "q2", "q3", "q4"), pairs("ש1", "中2"))
        keys = [key for frame in frames for name in ("chosen_call", "rejected_call") for key in frame[name]]
        ledger = tmp_path / "ledger.parquet"
        pl.DataFrame({"key": keys, "answer": [TEXTS[0]] * len(keys)}).write_parquet(ledger)
        directory = tmp_path / name
        directory.mkdir(parents=True)
        contents = Contents(
            tables=[
                ReleaseTable(config, "test", frame, "PersonalizedPairs")
                for config, frame in zip(configs, frames, strict=False)
            ],
            sources=[
                Source(
                    name=f"Source {number}",
                    location="somewhere",
                    revision="abc123",
                    digest=_key("rows"),
                    rows=4,
                    licence=licence,
                    attribution=f"By {TEXTS[1]}.",
                )
                for number, licence in enumerate(licences)
            ],
            statistics={"pairs": 6, "words": {"中文": 1.5}},
            card=Card(
                pretty_name='Tiny: "benchmark" 中文',
                summary=f"A summary. {TEXTS[2]}",
                languages=["en", "zh"],
                tasks=["text-generation"],
                tags=["reward-model"],
                columns={"id": "the row", "chosen": "the better answer"},
                sections=[Section(title="Uses", body="Not for {{ training }} <b>&amp;</b>.")],
                citation="Cite it.",
                papers=("@misc{paper,\n  title = {A paper},\n}",),
            ),
        )
        made_by = Builder(builder, "pluralbench-release")
        write(directory, contents, recipe=TinyRecipe(name="tiny", title=title), builder=made_by, ledger=ledger)
        return directory

    return make
