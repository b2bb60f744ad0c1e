"""Review sheets: what a reviewer sees, what the keys say, and that a filled sheet is read again."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_multilingual.preferred import BETTER
from build_multilingual.review import SHEET, write_review_sheets
from build_multilingual.translate import ROWS, SET_ASIDE
from pluralbench_release.errors import BuildError
from pluralbench_studies import StudyError

Texts = tuple[str, str, str]
NONE_ASIDE = pl.DataFrame(schema=SET_ASIDE)
MODELS = ("gpt-winner", "llama-loser", "secret-subset", "secret-category", "secret-translator")


def frame_of(code: str, *texts: Texts, first: int = 0) -> pl.DataFrame:
    """Rows in a language: prompt, chosen and rejected."""
    better, worse, subset, category, translator = MODELS
    rows: list[tuple[Any, ...]] = [
        (row_id, code, *row, better, worse, subset, category, translator, [], [], [])
        for row_id, row in enumerate(texts, first)
    ]
    return pl.DataFrame(rows, schema=ROWS, orient="row")


def numbered(code: str, rows: int) -> pl.DataFrame:
    return frame_of(code, *((f"¿{code} {n}?", f"mejor {n}", f"peor {n}") for n in range(rows)))


def english(rows: int) -> pl.DataFrame:
    return pl.DataFrame({"id": range(rows), "prompt": [f"Question {n}?" for n in range(rows)]})


def exported(
    folder: Path,
    frames: dict[str, pl.DataFrame],
    aside: pl.DataFrame = NONE_ASIDE,
    rows: int | None = None,
    seed: int = 1,
) -> list[Path]:
    most = max(frame.height for frame in frames.values())
    return write_review_sheets(folder, frames, english(most), aside, rows=rows, seed=seed)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_sheet_and_a_key_for_each_language(tmp_path: Path) -> None:
    frames = {code: numbered(code, 3) for code in ("spa_Latn", "arb_Arab")}
    written = exported(tmp_path / "review", frames)
    assert written == [tmp_path / "review/spa_Latn.csv", tmp_path / "review/arb_Arab.csv"]
    assert sorted(path.relative_to(tmp_path / "review").as_posix() for path in tmp_path.rglob("*.csv")) == [
        "arb_Arab.csv",
        "keys/arb_Arab.csv",
        "keys/spa_Latn.csv",
        "spa_Latn.csv",
    ]
    guide = (tmp_path / "review/guide.md").read_text(encoding="utf-8")
    assert all(f"`{name}`: {values}" in guide for name, values in (("better", "1 if"), ("decision", "drop if")))
    assert all(BETTER.answer(value) == value for value in ("1", "2", "s"))
    for path in written:
        code = path.stem
        assert path.read_bytes().startswith(b"\xef\xbb\xbf")  # by which a spreadsheet knows UTF-8
        rows = read(path)
        assert list(rows[0]) == list(SHEET)
        assert [(row["id"], row["language"]) for row in rows] == [(str(number), code) for number in range(3)]
        assert [row["prompt"] for row in rows] == [f"¿{code} {number}?" for number in range(3)]
        assert [row["prompt_english"] for row in rows] == [f"Question {number}?" for number in range(3)]
        assert {row[name] for row in rows for name in ("better", "decision", "reason", "check")} == {""}
        text = path.read_text(encoding="utf-8")
        assert not [name for name in (*MODELS, "chosen", "rejected") if name in text]


def order(folder: Path, code: str = "spa_Latn") -> dict[str, str]:
    return {row["id"]: row["answer_1"] for row in read(folder / "keys" / f"{code}.csv")}


def test_the_order_is_drawn_by_the_seed_for_each_row_and_language(tmp_path: Path) -> None:
    def drawn(name: str, rows: int, **options: Any) -> dict[str, str]:
        exported(
            tmp_path / name, {"spa_Latn": numbered("spa_Latn", rows), "deu_Latn": numbered("deu_Latn", rows)}, **options
        )
        return order(tmp_path / name)

    small, again, large, other = drawn("a", 60), drawn("b", 60), drawn("c", 90), drawn("d", 60, seed=2)
    assert small == again
    assert small.items() <= large.items()  # a row more changes no other row's draw
    assert small != other
    assert small != order(tmp_path / "a", "deu_Latn")
    assert 15 <= list(small.values()).count("chosen") <= 45


FILLED = "has been filled in; choose another `export_review=...`."
NO_SHEET = "is not a review sheet; choose another `export_review=...`."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sheet: sheet.with_columns(pl.Series("better", [None, "1"])).write_csv(), FILLED),
        (lambda sheet: sheet.with_columns(decision=pl.lit("drop")).write_csv(separator=";"), FILLED),
        (lambda sheet: sheet.select("id", verdict=pl.lit("drop")).write_csv(), NO_SHEET),
        (lambda _: "", NO_SHEET),
    ],
    ids=["better", "decision, with semicolons, as in many countries", "another table", "empty"],
)
def test_what_a_reviewer_has_filled_or_is_no_sheet_is_not_overwritten(
    tmp_path: Path, change: Callable[[pl.DataFrame], str], message: str
) -> None:
    [path] = exported(tmp_path, {"spa_Latn": numbered("spa_Latn", 2)})
    path.write_text(change(pl.read_csv(path, infer_schema=False)), encoding="utf-8-sig")
    before = path.read_bytes()
    with pytest.raises((BuildError, StudyError)) as caught:
        exported(tmp_path, {"deu_Latn": numbered("deu_Latn", 2)})
    assert str(caught.value) == f"{path} {message}"
    assert path.read_bytes() == before
    assert not (tmp_path / "deu_Latn.csv").exists()


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    for folder, problem in ((tmp_path, "review sheet"), (tmp_path / "thesis.txt", "folder")):
        with pytest.raises(BuildError) as caught:
            exported(folder, {"spa_Latn": numbered("spa_Latn", 2)})
        assert str(caught.value).startswith(f"{tmp_path / 'thesis.txt'} is not a {problem}; choose another ")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
