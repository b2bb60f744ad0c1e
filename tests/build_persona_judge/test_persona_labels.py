"""Third-person labels: sheets out, labels in, the paper's numbers, and labels beside a release."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from build_persona_judge.labels import LABELS, figures_of, figures_table
from commands import refused
from pluralbench_release import rebuild, verify
from pluralbench_studies import read_rows
from samples import sample

Run = Callable[..., tuple[int, str]]
PEOPLE = [word for name in ("an", "bo", "cy", "di") for word in ("--annotator", name)]


@pytest.fixture
def study(run: Run, tmp_path: Path) -> Path:
    """Sheets of 20 items of the sample's opinion_qa."""
    folder = tmp_path / "labels"
    words = ("--release", sample("build-persona-judge").release, "--task", "opinion_qa", "--limit", 20)
    status, said = run("label", *words, "--export", folder, *PEOPLE)
    assert status == 0, said
    return folder


def fill(folder: Path, wrong: str = "", certainty: str = "90") -> None:
    """Everybody is right, but for one annotator."""
    truth = dict(pl.read_csv(folder / "key.csv").select("item", "truth").iter_rows())
    for path in (folder / "sheets").glob("*.csv"):
        sheet = pl.read_csv(path, infer_schema=False)
        swapped = {"A": "B", "B": "A"} if path.stem == wrong else {"A": "a", "B": "b "}
        answers = pl.Series([swapped[truth[item]] for item in sheet["item"]])
        sheet.with_columns(answer=answers, certainty=pl.lit(certainty)).write_csv(path)


def test_sheets_tell_of_the_person_and_not_of_the_truth(study: Path) -> None:
    sheet = read_rows(study / "sheets/an.csv")
    shown = ["item", "annotator", "persona", "context", "option_a", "option_b"]
    assert sheet.columns == [*shown, "answer", "certainty", "remark"]
    assigned = pl.read_csv(study / "assigned.csv")
    assert set(assigned.group_by("item").len()["len"]) == {3}
    assert set(assigned.group_by("annotator").len()["len"]) == {15}
    key = pl.read_csv(study / "key.csv")
    for path in (study / "sheets").iterdir():
        text = path.read_text(encoding="utf-8")
        assert "truth" not in text
        assert not [row_id for row_id in key["id"] if row_id in text]


@pytest.mark.heavy
def test_labels_come_in_and_go_beside_a_release(run: Run, study: Path, tmp_path: Path) -> None:
    fill(study, wrong="di")
    status, said = run("label", "--import", study)
    assert status == 0, said
    labels = pl.read_csv(study / "labels.csv")
    assert (labels.columns, labels.height) == (LABELS.names(), 60)
    [figures] = json.loads((study / "results.json").read_text(encoding="utf-8"))["figures"]
    assert (figures["items"], figures["no_majority"]) == (20, 0)
    assert (figures["majority"]["count"], figures["single"]["count"]) == (20, 45)
    assert (figures["agreeing"]["count"], figures["agreeing"]["of"]) == (5 * 3 + 15, 60)
    out = tmp_path / "out"
    status, said = run("--labels", study / "labels.csv", "--out", out)
    assert status == 0, said
    assert "Third-person labels" in (out / "README.md").read_text(encoding="utf-8")
    assert verify(out) == []
    (study / "labels.csv").unlink()
    assert not any(rebuild(out, tmp_path / "again"))
    assert (tmp_path / "again/provenance/labels.parquet").is_file()


def test_what_comes_back_wrong_is_named(run: Run, study: Path, tmp_path: Path) -> None:
    fill(study, certainty="101")
    status, said = run("label", "--import", study)
    assert status == 2
    assert "row 2 (item " in said
    assert said.startswith("Error: 60 cells cannot be read:\n")
    shown = said.count("): the certainty '101' is not an integer from 1 to 100.\n")
    assert shown > 5
    assert said.endswith(f"\nand {60 - shown} more.\n")
    foreign = tmp_path / "foreign.csv"
    pl.DataFrame([("opinion_qa", "x", "an", "A", "50", "A", "u")], schema=LABELS.names(), orient="row").write_csv(
        foreign
    )
    refused(
        run("--labels", foreign, "--out", tmp_path / "out"),
        f"{foreign}: the label of x (opinion_qa) matches no item of this build; use labels of the same sources and "
        "seed.",
    )


def test_the_numbers_of_the_paper() -> None:
    """Table 5 and table 7: 190 of 300 majorities right, 30 of the 42 that are sure; 536 of 899 single labels, where one
    label is missing."""
    rows: list[tuple[str, str, str, int]] = []
    # Right majorities of three (56) and of two (134), wrong ones of two (33) and of three (77).
    kinds = ["AAA"] * 56 + ["AAB"] * 134 + ["BBA"] * 33 + ["BBB"] * 77
    sure = {*range(30), *range(190, 202)}
    for number, answers in enumerate(kinds):
        rows += [(str(number), f"p{place}", one, 90 if number in sure else 50) for place, one in enumerate(answers)]
    last = rows.pop()
    assert last[2] == "B"
    frame = pl.DataFrame(rows, schema=["id", "annotator", "answer", "certainty"], orient="row")
    labels = frame.select("id", "annotator", "answer", "certainty", task=pl.lit("opinion_qa"), truth=pl.lit("A"))
    [found] = figures_of(labels.with_columns(user=pl.col("id")).select(LABELS.names()))
    counts = {name: (found[name]["count"], found[name]["of"]) for name in ("majority", "high", "low")}
    assert counts == {"majority": (190, 300), "high": (30, 42), "low": (160, 258)}
    assert (found["no_majority"], found["labels"], round(found["majority"]["share"], 3)) == (0, 899, 0.633)
    assert figures_table([found])["opinion_qa"][4].startswith("63% [")


def test_a_tie_is_no_majority_and_an_unsaid_certainty_is_none() -> None:
    rows = [
        ("i", "an", "A", 80),
        ("i", "bo", "B", 80),
        ("j", "an", "A", None),
        ("k", "an", "B", 79),
        ("k", "bo", "B", 81),
    ]
    frame = pl.DataFrame(rows, schema=["id", "annotator", "answer", "certainty"], orient="row")
    labels = frame.with_columns(task=pl.lit("t"), truth=pl.lit("A"), user=pl.col("id")).select(LABELS.names())
    [found] = figures_of(labels)
    assert (found["items"], found["no_majority"], found["majority"]["of"]) == (3, 1, 2)
    assert (found["high"]["of"], found["low"]["of"], found["high"]["count"]) == (1, 0, 0)
