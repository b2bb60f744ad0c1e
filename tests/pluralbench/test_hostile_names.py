"""Names and texts of others in everything that the commands print and write: none is taken for more than text."""

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import tomli_w
from commands import in_process
from html_runs import Read
from made_runs import scored
from markdown_it import MarkdownIt
from pluralbench.commands.app import main
from pluralbench.leaderboard.site import INDEX
from written_tables import write

ELEMENT = "<img src=x onerror=alert(1)>"
CONTROLS = "\x1b]0;t\x07\x1b[2J\x9b31m\x9dt\x9c\x90\x7f\x08\x0b\u202e\u2066\u202a\x85"
HOSTILE = f"=1+1{CONTROLS}{ELEMENT}</script>$x_1$|`[x](javascript:x)\\input{{x}}%&'\""
RIGHT_TO_LEFT = "علی‌رضا 👨‍👩‍👧"
OF_TABLES = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
RAW = {sign for sign in CONTROLS if not sign.isprintable()}
LINES = {
    "report": ["runs"],
    "report --detail": ["runs"],
    **{f"report --format {form}": ["runs"] for form in ("csv", "markdown", "latex", "json")},
    "show": ["runs/a", "--data", "data/pairs.jsonl"],
    "compare": ["runs/a", "runs/b"],
    "check": ["runs/a", "--data", "data/pairs.jsonl"],
    "list": ["mine.toml"],
    "agree": ["runs/a", "--published", "published.csv", "--rescore", "0"],
    "correlate": ["scores.csv", "scores.csv"],
    "leaderboard": ["runs", "--data", "data/pairs.jsonl", "--any-data", "--site", "site"],
    "report --html page.html": ["runs"],
    "report --plots plots": ["runs"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, a benchmark and tables in which every name and text is hostile."""
    folder = tmp_path_factory.mktemp("made")
    rows = [
        {
            "id": f"{n}{HOSTILE}",
            "prompt": HOSTILE,
            "chosen": f"{HOSTILE}{n}",
            "rejected": "b",
            "subset": HOSTILE[n % 2 :],
        }
        for n in range(6)
    ]
    write(folder / "data/pairs.jsonl", rows)
    title, rule = f"T{HOSTILE}", {"All": {HOSTILE: 3, HOSTILE[1:]: 3}}
    columns = {"prompt": ["prompt"], "subset": "subset"}
    described = {"title": title, "overall": "items", "sections": rule, "columns": columns}
    (folder / "mine.toml").write_text(tomli_w.dumps({"mine": described}), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("a", "b"):
            scored("mine.toml", Path("data/pairs.jsonl"), Path("runs") / name, model=f"{HOSTILE}{RIGHT_TO_LEFT}{name}")
    sides = [
        {"id": row["id"], "subset": row["subset"], "scores_chosen": n, "scores_rejected": 1.5}
        for n, row in enumerate(rows)
    ]
    write(folder / "published.csv", sides)
    write(folder / "scores.csv", [{"model": f"{HOSTILE}{n}", "score": n * n} for n in range(5)])
    return folder


@pytest.mark.parametrize("line", LINES)
def test_every_command_shows_them_as_text(
    line: str, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made)
    verb, *options = line.split()
    status, said = in_process("pluralbench", main, monkeypatch, capsys)(verb, *LINES[line], *options)
    assert status in {0, 1}, said
    assert not set(said) & RAW, ascii(said)
    form = options[-1] if options else ""
    out = said[said.index("[") :] if form == "json" else said
    if form == "csv":
        cells = [cell for row in csv.reader(io.StringIO(out)) for cell in row]
        assert not [cell for cell in cells if cell.startswith("=")]
        assert [cell for cell in cells if RIGHT_TO_LEFT in cell]
    elif form == "markdown":
        page = Read(MarkdownIt("commonmark").enable("table").render(said))
        assert {tag for tag, _ in page.elements} <= OF_TABLES
        assert RIGHT_TO_LEFT in "".join(page.words)
    elif form == "json":
        assert CONTROLS in json.loads(out)[0]["sheet"]
    elif form == "latex":
        assert "\\input" not in said
    for path in {"page.html": [made / "page.html"], "leaderboard": [made / "site" / INDEX]}.get(form or verb, []):
        shown = Read(path.read_text(encoding="utf-8"))
        tags = [
            (tag, values) for tag, values in shown.elements if tag == "img" or "javascript:" in str(values.get("href"))
        ]
        assert tags == []
    if form == "plots":
        for path in (made / "plots").glob("*.svg"):
            assert not [element for element in ET.parse(path).iter() if "img" in element.tag]  # noqa: S314 - just drawn
