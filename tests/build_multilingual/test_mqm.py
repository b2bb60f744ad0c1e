"""MQM and MLQE-PE as they are published: an error a row, texts that quote nothing, and columns of other names."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from build_multilingual.rated import SCALES, read
from build_multilingual.recipe import RatedTable
from pluralbench_release.errors import SourceError

HEADER = ("system", "doc", "docSegId", "globalSegId", "rater", "source", "target", "category", "severity")
SOURCE, REPEATED = 'He said: "No.', "Thanks."
GOOD, BAD = "Er sagte: „Nein.", 'Er sagt: "Nein'
# The sentences are invented.
ERRORS: list[Sequence[Any]] = [
    ("ref", "d1", 1, 1, "r1", SOURCE, GOOD, "No-error", "No-error"),
    ("ref", "d1", 1, 1, "r2", SOURCE, GOOD.replace("„", "<v>„</v>"), "Fluency/Punctuation", "Minor"),
    ("mt", "d1", 1, 1, "r1", SOURCE, BAD.replace("sagt", "<v>sagt</v>"), "Accuracy/Mistranslation", "Major"),
    ("mt", "d1", 1, 1, "r1", SOURCE, f"{BAD}<v></v>", "Fluency/Punctuation", "Minor"),
    ("mt", "d1", 1, 1, "r1", SOURCE, f"<v>{BAD}</v>", "Style/Awkward", "minor"),
    ("mt", "d1", 1, 1, "r2", SOURCE.replace("He", "<v>He</v>"), BAD, "Style/Awkward", "Neutral"),
    ("mt", "d1", 2, 2, "r1", REPEATED, "<v>Dunkel.</v>", "Non-translation!", "Major"),
    ("ref", "d1", 2, 2, "r1", REPEATED, "Danke.", "No-error", "no-error"),
    # The same texts in another segment are rated again, and not a second error of the first.
    ("ref", "d2", 1, 3, "r1", REPEATED, "<v>Danke.</v>", "Style/Awkward", "Minor"),
]
PENALTIES = {
    (SOURCE, "ref", GOOD): 0.05,
    (SOURCE, "mt", BAD): 3.05,
    (REPEATED, "mt", "Dunkel."): 25.0,
    (REPEATED, "ref", "Danke."): 0.5,
}


def tsv(path: Path, rows: Sequence[Sequence[Any]], header: Sequence[str] = HEADER) -> str:
    """A file that quotes nothing, as MQM's and MLQE-PE's do."""
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in (header, *rows)), encoding="utf-8")
    return str(path)


def test_errors_become_penalties(tmp_path: Path) -> None:
    result = read(RatedTable(location=tsv(tmp_path / "mqm.tsv", ERRORS), direction="en-de", quoting="none"))
    frame = result.frame.select("source", "system", "translation", "raw_score")
    assert {row[:3]: round(row[3], 9) for row in frame.iter_rows()} == PENALTIES
    assert (result.score, result.scale) == ("mqm_penalty", SCALES["mqm_penalty"])
    assert result.left_out == {"repeated translation": 1}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            ("mt", "d1", 1, 1, "r3", SOURCE, BAD, "HOTW-test", "HOTW-test"),
            "mqm.tsv has 1 errors of unknown severity ('HOTW-test'); remove these rows. Severities are Major, Minor, "
            "Neutral and No-error.",
        ),
        (
            ("mt", "d1", 1, 1, "r3", SOURCE, "Ganz anders.", "Style/Awkward", "Minor"),
            "mqm.tsv has several texts for one translation (system mt, doc d1, docSegId 1, globalSegId 1); fix or "
            "remove its rows.",
        ),
    ],
)
def test_errors_that_cannot_be_weighed_are_named(tmp_path: Path, row: Sequence[Any], sentence: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(RatedTable(location=tsv(tmp_path / "mqm.tsv", [*ERRORS, row]), direction="en-de", quoting="none"))
    assert str(caught.value).replace(f"{tmp_path}/", "") == sentence


def test_the_command_names_columns_and_quoting(
    tmp_path: Path, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    header = ("index", "original", "mt_output", "mean")
    rows = [
        (number, f'"A source" {number}', f"{word} {number}", mean)
        for number in range(2)
        for word, mean in (("gut", 90), ("nah", 75), ("mittel", 60), ("arg", 20))
    ]
    tsv(tmp_path / "mlqe.tsv", rows, header)
    words = ["--recipe", "translation", "--rated", "mlqe.tsv", "--direction", "en-de", "--score", "mean", "--per-level"]
    named = ["--scale", "higher/5/10", "--column", "source=original", "--column", "translation=mt_output"]
    status, text = run(*words, 2, *named, "--quoting", "none", "--out", "release")
    assert status == 0, text
    assert "translation" in text
    status, text = run(*words, 1, *named, "--out", "other")
    assert (status, "set `--quoting`" in text) == (2, True)
    tsv(tmp_path / "mlqe.tsv", rows[::4], header)
    status, text = run(*words, 1, *named, "--quoting", "none", "--out", "one")
    assert status == 2
    assert (
        "en-de: each of the 2 sources has one translation, but a pair needs two; use a table with several rated "
        "translations per source."
    ) in text


SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "multilingual"


def test_real_ratings_as_tsv_are_those_of_the_json_lines(tmp_path: Path) -> None:
    path = SHARED / "wmt21_ted_mqm_en-de_5way.jsonl"
    if not path.is_file():
        pytest.skip(f"the real rated translations are not at {path}")
    rows = [
        (row["direction"], row["source"], *(item[name] for name in ("system", "translation", "mqm_penalty")))
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        for item in row["candidates"]
    ]
    assert any('"' in row[1] for row in rows)
    header = ("lp", "source", "system", "translation", "mqm_penalty")
    result = read(RatedTable(location=tsv(tmp_path / "mqm.tsv", rows, header), quoting="none"))
    assert result.frame.equals(read(RatedTable(location=str(path))).frame)
