"""Bad runs beside good ones: every reader of their directory shows the good ones, and names each that it leaves out."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluralbench
import polars as pl
import pytest
from commands import in_process
from made_runs import scored
from pluralbench.commands.app import main
from written_tables import write

Change = Callable[[Path], object]
PAIRS = [{"id": f"q{n}", "prompt": f"p{n}", "chosen": f"better {n}", "rejected": f"w{n}" * (n + 1)} for n in range(6)]
GOOD = ("good-a", "good-b", "good-c")
READERS = {
    **{f"report runs --format {form}": "" for form in ("table", "json")},
    "report runs --html page.html": "page.html",
    "leaderboard runs --data pairs.jsonl --any-data --site site": "site/index.html",
    "check runs --data pairs.jsonl": "",
}
"""The commands, and the file in which each shows the runs; the terminal without one."""
QUICK = ("report runs --format json", "check runs --data pairs.jsonl")


def _in_json(name: str, change: Callable[[Any], object]) -> Change:
    def changed(run: Path) -> None:
        values = json.loads((run / name).read_text(encoding="utf-8"))
        change(values)
        (run / name).write_text(json.dumps(values), encoding="utf-8")

    return changed


def _model(name: str) -> Change:
    return _in_json("run.json", lambda values: [values[of]["model"].update(name=name) for of in ("config", "result")])


def _record(part: str, **changes: Any) -> Change:
    return _in_json("run.json", lambda values: values["config"][part].update(changes))


def _numbers(**changes: Any) -> Change:
    return _in_json("metrics.json", lambda values: [row.update(changes) for row in values["rows"]])


def _items(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Change:
    return lambda run: change(pl.read_parquet(run / "items.parquet")).write_parquet(run / "items.parquet")


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Change:
    return lambda run: (run / name).write_bytes(change((run / name).read_bytes()))


UNREADABLE: dict[str, Change] = {
    "not-json": _bytes("run.json", lambda _: b"{"),
    "empty": _bytes("run.json", lambda _: b""),
    "bytes": _bytes("run.json", lambda _: bytes(range(256))),
    "cut-items": _bytes("items.parquet", lambda data: data[: len(data) // 2]),
    "cut-metrics": _bytes("metrics.json", lambda data: data[: len(data) // 2]),
    "no-items": lambda run: (run / "items.parquet").unlink(),
    "no-metrics": lambda run: (run / "metrics.json").unlink(),
    "nan-margin": _items(lambda frame: frame.with_columns(margin=pl.lit(float("nan")))),
    "unknown-verb": _in_json("run.json", lambda values: values.update(verb="dance")),
    "another-verb": _in_json("run.json", lambda values: values.update(verb="judge")),
    "surrogate": _model("m\ud800"),
    "surrogate-title": _record("benchmark", title="t\ud800"),
    "null-location": _record("data", location="a\0b"),
    "surrogate-location": _record("data", location="a\ud800"),
    "nan": _numbers(value=float("nan")),
    "infinite": _numbers(high=float("inf")),
    "huge": _numbers(value=1e308),
    "huge-low": _numbers(low=-1e308, high=1e308),
    "huge-n": _numbers(n=10**30),
    "text": _numbers(value="x"),
    "surrogate-metric": _numbers(section="\ud800"),
}
ODD: dict[str, Change] = {
    "control": _model("m\x1b[31m\x00\x07"),
    "long": _model("m" * 50_000),
    "lines": _model("m\nn"),
    "nameless": _model(""),
    "mark": _bytes("run.json", lambda data: b"\xef\xbb\xbf" + data),
    "unknown-benchmark": _record("benchmark", name="nobody"),
    "null-title": _record("benchmark", title="t\0"),
    "no-numbers": _in_json("metrics.json", lambda values: values.update(rows=[])),
}
"""Changes to runs that can still be read; what they name is shown as text."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three good runs and one of each other kind."""
    folder = tmp_path_factory.mktemp("made")
    write(folder / "pairs.jsonl", PAIRS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in GOOD:
            scored("pairs", Path("pairs.jsonl"), Path("runs") / name, model=f"model-{name}")
        for name, change in (UNREADABLE | ODD).items():
            change(shutil.copytree("runs/good-a", Path("runs") / name))
    return folder


def _named(said: str) -> dict[str, str]:
    """The lines that name each run that cannot be read, without those that name none."""
    lines = {name: [line for line in said.splitlines() if f"runs/{name}" in line] for name in UNREADABLE}
    assert all(lines.values()), [name for name, own in lines.items() if not own]
    return {name: own[0] for name, own in lines.items()}


@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=[pytest.mark.heavy] * (line not in QUICK)) for line in READERS]
)
def test_commands(line: str, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(made)
    status, said = in_process("pluralbench", main, monkeypatch, capsys)(*line.split())
    assert status == (1 if line.startswith("check") else 0), said[-1_000:]
    named = _named(said)
    if line.startswith("report"):
        assert [name for name, own in named.items() if not own.startswith("Skipped: ")] == []
        assert said.count("Skipped: ") == len(UNREADABLE)
    shown = Path(READERS[line]).read_text(encoding="utf-8") if READERS[line] else said
    assert [name for name in GOOD if name not in shown] == []


@pytest.mark.parametrize("name", UNREADABLE)
def test_one_alone_is_refused_by_its_name(name: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    with pytest.raises(pluralbench.UserError, match=f"runs/{name}"):
        pluralbench.load_run(f"runs/{name}")


def test_runs_are_compared_by_their_directories(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    first, second = (pluralbench.load_run(f"runs/{name}") for name in GOOD[:2])
    assert (
        pluralbench.compare("runs/good-a", Path("runs/good-b")).headline == pluralbench.compare(first, second).headline
    )
    with pytest.raises(pluralbench.UserError, match="runs/huge"):
        pluralbench.compare("runs/good-a", "runs/huge")
