"""A study's folder: written once, left alone where somebody worked in it, read back with what came in."""

from pathlib import Path

import polars as pl
import pytest
from pluralbench_runs import OutputError
from pluralbench_runs.study_options import ReadOptions, StudyRecipe
from pluralbench_studies import (
    Answers,
    Form,
    Study,
    StudyError,
    annotator_progress,
    majority,
    progress_rows,
    read_study,
    score,
    write_study,
)

FORM = Form({"text": "The text"}, [score("good", 1, 5)])
ITEMS = pl.DataFrame({"item": ["x1", "x2", "x3"], "text": ["=one", "two", "three"]})
KEY = ITEMS.select("item", side=pl.lit("chosen"))


def made(folder: Path, *, seed: int = 0, fresh: bool = False) -> bool:
    settings = StudyRecipe(annotators=["an", "bo"], annotators_per_item=2, seed=seed)
    guide = folder.parent / "guide.md"
    guide.write_text("# How\n", encoding="utf-8")
    message = write_study(folder, settings, ITEMS.join(KEY, on="item"), ["side"], FORM, guide, fresh=fresh)
    return "sheets written" in message


def read(folder: Path, *files: Path) -> tuple[Study[StudyRecipe], Answers]:
    return read_study(folder, StudyRecipe, FORM, files, ReadOptions())


def fill(path: Path, *answers: str) -> None:
    sheet = pl.read_csv(path, infer_schema=False)
    sheet.with_columns(good=pl.Series([*answers, *[""] * (sheet.height - len(answers))])).write_csv(path)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_study_is_written_once_and_read(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    assert made(folder)
    assert sorted(files(folder)) == [
        "assigned.csv",
        "key.csv",
        "label_studio/an.json",
        "label_studio/bo.json",
        "label_studio/guide.md",
        "label_studio/label_config.xml",
        "label_studio/tasks.json",
        "sheets/an.csv",
        "sheets/bo.csv",
        "sheets/guide.md",
        "study.toml",
    ]
    fill(folder / "sheets/an.csv", "5", "4")
    before = files(folder)
    assert not made(folder)
    assert files(folder) == before
    study, found = read(folder)
    assert (study.settings.annotators_per_item, study.key.rows()) == (2, KEY.rows())
    assert sorted(found.answers["answer"]) == ["4", "5"]
    assert annotator_progress(study.assigned, found.answers).rows() == [("an", 3, 2), ("bo", 3, 0)]
    assert progress_rows(study, found) == [("an", "2 of 3"), ("bo", "0 of 3: nothing yet")]
    assert found.problems.is_empty()
    more = pl.concat([study.assigned.head(0), study.assigned.filter(pl.col("item") != study.assigned["item"][0])])
    done = annotator_progress(more, found.answers)
    assert (done["answered"] <= done["given"]).all()  # an answer to an item of others is a problem, and no progress


def test_filled_sheets_and_other_studies_are_not_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    made(folder)
    with pytest.raises(OutputError, match=r"was made with other settings \(seed 0, now 1\)"):
        made(folder, seed=1)
    assert made(folder, seed=1, fresh=True)
    path = folder / "sheets/bo.csv"
    fill(path, "", "3")
    before = files(folder)
    with pytest.raises(StudyError) as caught:
        made(folder, fresh=True)
    assert str(caught.value) == f"{path} has been filled in; choose another folder, so that nothing is lost."
    assert files(folder) == before


def test_what_is_no_study_and_what_is_of_another_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} is not a study: it has no study.toml; give the folder that the sheets were written to."
    )
    folder = tmp_path / "study"
    made(folder)
    with pytest.raises(StudyError, match=r"^There are no answers yet in .*sheets; fill in the sheets first\.$"):
        read(folder)
    other = tmp_path / "other.csv"
    other.write_text("item,annotator,text,good\nx9,an,two,3\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"other\.csv, row 2: .*'x9'"):
        read(folder, other)
    fill(folder / "sheets/an.csv", "5")
    key = pl.read_csv(folder / "key.csv")
    key.reverse().write_csv(folder / "key.csv")
    assert read(folder)[0].key.height == key.height
    others = {"key": (key.drop("side"), key.with_columns(side=pl.lit("rejected"))), "assigned": (key,)}
    for name, frame in ((name, frame) for name, frames in others.items() for frame in frames):
        frame.write_csv(folder / f"{name}.csv")
        with pytest.raises(StudyError, match=rf"{name}\.csv has been changed; restore the original file\.$"):
            read(folder)
        key.write_csv(folder / "key.csv")


def test_a_majority_has_more_votes_than_any_other() -> None:
    rows = [("i", "A"), ("i", "A"), ("i", "B"), ("j", "A"), ("j", "B"), ("k", "B"), ("l", "C"), ("l", "A"), ("l", "B")]
    answers = pl.DataFrame(
        [(item, "q", f"p{number}", answer) for number, (item, answer) in enumerate(rows)],
        schema=["item", "question", "annotator", "answer"],
        orient="row",
    )
    assert sorted(majority(answers).select("item", "annotators", "votes", "answer").rows()) == [
        ("i", 3, 2, "A"),
        ("j", 2, 1, None),
        ("k", 1, 1, "B"),
        ("l", 3, 1, None),
    ]
