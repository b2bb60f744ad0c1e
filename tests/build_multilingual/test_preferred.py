"""What reviewers preferred: read by the key, compared with gold and judge, kept in a release, or refused."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from build_multilingual.preferred import PREFERRED, read_preferred, review_figures, review_table
from build_multilingual.review import write_review_sheets
from build_multilingual.translate import ROWS, SET_ASIDE
from pluralbench_release import rebuild, verify
from pluralbench_release.errors import SourceError
from pluralbench_runs import UserError

CODE = "spa_Latn"


def sheet(folder: Path, rows: int = 12) -> Path:
    frame = pl.DataFrame(
        [(n, CODE, f"¿{n}?", f"bien {n}", f"mal {n}", "m", "m", "s", "c", "t", [], [], []) for n in range(rows)],
        schema=ROWS,
        orient="row",
    )
    english = pl.DataFrame({"id": range(rows), "prompt": [f"{n}?" for n in range(rows)]})
    [path] = write_review_sheets(folder, {CODE: frame}, english, pl.DataFrame(schema=SET_ASIDE), rows=None, seed=1)
    return path


def answer(path: Path, wanted: dict[int, str], key: Path | None = None) -> None:
    """Fill in what stands for "chosen", "rejected" and "same", and anything else as it is."""
    first = dict(pl.read_csv(key or path.parent / "keys" / f"{CODE}.csv").select("id", "answer_1").iter_rows())

    def cell(row: int) -> str:
        side = wanted.get(row, "")
        if side in {"chosen", "rejected"}:
            return "1" if first[row] == side else "2"
        return "S " if side == "same" else side

    frame = pl.read_csv(path, infer_schema=False)
    frame.with_columns(better=pl.Series([cell(int(row)) for row in frame["id"]])).write_csv(path, include_bom=True)


def test_the_key_tells_what_was_preferred(tmp_path: Path) -> None:
    path = sheet(tmp_path)
    assert read_preferred([str(path)]).is_empty()
    answer(path, {0: "chosen", 1: "rejected", 2: "same", 5: "chosen"})
    result = read_preferred([str(path)])
    assert result.schema == PREFERRED
    assert result.select("id", "preferred").rows() == [(0, "chosen"), (1, "rejected"), (2, "same"), (5, "chosen")]
    assert set(result["reviewer"]) == {"1"}


def test_reviewers_are_compared_with_gold_judge_and_each_other(tmp_path: Path) -> None:
    path = sheet(tmp_path)
    second = tmp_path / "second.csv"
    second.write_bytes(path.read_bytes())
    answer(path, dict.fromkeys(range(10), "chosen") | {10: "rejected", 11: "same"})
    answer(second, dict.fromkeys(range(9), "chosen") | dict.fromkeys((9, 10, 11), "rejected"))
    judged = tmp_path / "items.parquet"
    outcomes = ["win"] * 8 + ["loss", "loss", "tie", "win"]
    pl.DataFrame({"config": CODE, "id": [str(n) for n in range(12)], "outcome": outcomes}).write_parquet(judged)
    [result] = review_figures(read_preferred([str(path), str(second)], judged=str(judged)))
    assert (result["reviewers"], result["rows"], result["reviewed"], result["same"]) == (2, 12, 24, 1)
    assert (result["gold"]["count"], result["gold"]["of"]) == (19, 23)
    assert result["gold"]["low"] < 19 / 23 < result["gold"]["high"]
    # Without the tie, and without the row on which the one reviewer prefers neither.
    assert (result["judge"]["count"], result["judge"]["of"]) == (16 + 0 + 1, 21)
    assert (result["judge_gold"]["count"], result["judge_gold"]["of"]) == (9, 11)
    assert (result["reviewers_agree"]["count"], result["reviewers_agree"]["of"]) == (10, 12)
    assert review_table([result])["as in English"][0].startswith("83% [")


def named_twice(path: Path, _: Path) -> None:
    rows = pl.read_csv(path, infer_schema=False)
    pl.concat([rows, rows[:1]]).write_csv(path)


SPOILED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "no key": (
        lambda _, key: key.unlink(),
        "SHEET needs its key KEY; put the folder `keys` of the review next to the sheet.",
    ),
    "another answer": (
        lambda path, _: answer(path, {1: "3"}),
        "SHEET, row 3 (id 1): the answer '3' to better is not one of 1, 2, s.",
    ),
    "another review": (
        lambda _, key: pl.read_csv(key)[1:].write_csv(key),
        "SHEET, row 2 (id 0): its key has no such row; the key belongs to another or a newer sheet.",
    ),
    "a row twice": (named_twice, "SHEET, row 14 (id 0) occurs twice; keep one of the rows."),
    "a changed key": (
        lambda _, key: key.write_text(key.read_text(encoding="utf-8").replace("rejected", "other"), encoding="utf-8"),
        "KEY is not a key of review sheets; restore the file as it was written.",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    path = sheet(tmp_path)
    answer(path, {0: "chosen", 1: "rejected"})
    key, (spoil, sentence) = path.parent / "keys" / path.name, SPOILED[name]
    spoil(path, key)
    with pytest.raises(SourceError) as caught:
        read_preferred([str(path)])
    assert str(caught.value) == sentence.replace("SHEET", str(path)).replace("KEY", str(key))


def test_a_language_in_a_sheet_names_no_key_elsewhere(tmp_path: Path) -> None:
    path = sheet(tmp_path)
    answer(path, {0: "chosen"})
    (path.parent / "keys" / path.name).rename(tmp_path / "elsewhere.csv")
    path.write_text(path.read_text(encoding="utf-8").replace(CODE, "../../elsewhere"), encoding="utf-8")
    with pytest.raises(UserError, match=r"row 2 \(id 0\): the language is named '\.\./\.\./elsewhere'"):
        read_preferred([str(path)])


@pytest.mark.heavy
def test_a_release_keeps_what_reviewers_preferred(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    review, out = tmp_path / "review", tmp_path / "out"
    words = ("--recipe", "sample", "--language", CODE, "--out", out)
    status, output = run(*words, "--export-review", review)
    assert status == 0, output
    path = review / f"{CODE}.csv"
    ids = pl.read_csv(path)["id"].to_list()
    answer(path, {row: "rejected" if place % 5 == 0 else "chosen" for place, row in enumerate(ids)})
    digests = json.loads((out / "provenance/manifest.json").read_text(encoding="utf-8"))["tables"]
    status, output = run(*words, "--decisions", path, "--fresh")
    assert status == 0, output
    assert "Preferences of reviewers in translation" in output
    share = 1 - len(ids[::5]) / len(ids)
    assert f"{share:.0%} [" in (out / "README.md").read_text(encoding="utf-8")
    assert json.loads((out / "provenance/manifest.json").read_text(encoding="utf-8"))["tables"] == digests
    assert pl.read_parquet(out / "provenance/preferred.parquet").height == len(ids)
    assert verify(out) == []
    path.unlink()
    assert not any(rebuild(out, tmp_path / "again"))


@pytest.mark.parametrize("order", range(2))
def test_who_prefers_what_does_not_depend_on_the_order_of_rows(tmp_path: Path, order: int) -> None:
    path = sheet(tmp_path)
    answer(path, {n: ("chosen", "rejected", "same")[n % 3] for n in range(12)})
    before = read_preferred([str(path)])
    rows = pl.read_csv(path, infer_schema=False)
    places = list(range(12))
    random.Random(order).shuffle(places)
    rows[places].write_csv(path)
    assert read_preferred([str(path)]).equals(before)
