"""Marks that two annotators do not agree on: once more, a third, a discussion, a reviewer; with people's commands."""

import json
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_chinese.annotation.annotations import MARKS
from build_chinese.annotation.rounds import next_annotators, pair_agreement
from chinese_project import FIVE, TASKS, fill, mark_of, read_rows, sheet_rows, write_prompts

Run = Callable[..., tuple[int, str]]


def opposite(first: str, second: str) -> str:
    return {"1": "2", "2": "1", "s": "s"}[mark_of(first, second)]


def filled(run: Run, folder: Path, configs: Sequence[str], overlap: float, *words: object) -> list[Path]:
    """Filled sheets of five annotators on tasks of which some have two."""
    write_prompts(folder, configs)
    status, said = run(*TASKS, "--overlap", overlap, "--out", "tasks", *words)
    assert status == 0, said
    return [fill(Path(f"tasks/sheets/{name}.csv"), Path(f"{name}.csv")) for name in FIVE]


@pytest.fixture
def sheets(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Filled sheets, of which one has everything the wrong way round; four tasks have two annotators."""
    monkeypatch.chdir(tmp_path)
    made = filled(run, tmp_path, ["open", "human"], 0.4)
    fill(Path("tasks/sheets/an.csv"), Path("an.csv"), opposite)
    return made


@pytest.fixture
def doubled(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Filled sheets, of which one always prefers the first; of thirty tasks six have two annotators."""
    monkeypatch.chdir(tmp_path)
    made = filled(run, tmp_path, ["open", "human", "preference"] * 2, 0.2)
    fill(Path("tasks/sheets/an.csv"), Path("an.csv"), lambda *_: "1")
    return made


def read(run: Run, *words: object) -> tuple[str, dict[str, Any]]:
    status, said = run("annotations", *words, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert status == 0, said
    return " ".join(said.split()), json.loads(Path("annotated.report.json").read_text(encoding="utf-8"))


def answers_by_id() -> list[dict[str, str]]:
    """The texts of each prompt's responses."""
    return [{one["id"]: one["content"] for one in row["responses"]} for row in read_rows(Path("tasks/prompts.jsonl"))]


def again(*paths: Path) -> list[object]:
    return [word for path in paths for word in ("--again", path)]


def test_what_differs_goes_back_then_to_a_third_and_then_a_share_is_reviewed(run: Run, sheets: list[Path]) -> None:
    said, report = read(run, *sheets)
    little = [pair for pair in report["markers"] if not pair["enough"]]
    assert little
    assert all("an" in pair["annotators"] for pair in little)
    tasks = {task for pair in little for task in pair["tasks"]}
    back = sorted(Path("annotated.again").iterdir())
    assert {(path.stem, row["task"]) for path in back for row in sheet_rows(path)} == {
        (name, task) for pair in little for task in pair["tasks"] for name in pair["annotators"]
    }
    assert "Next, the same annotators mark these again, independently: annotated.again" in said
    assert "resolve" not in said
    assert not Path("annotated.discuss.csv").exists()
    assert not Path("annotated.third").exists()
    assert not list(Path().glob("annotated.review*.csv"))

    # They mark as before, so that a third annotator decides.
    more = [fill(path, Path(f"{path.stem}-2.csv"), opposite if path.stem == "an" else mark_of) for path in back]
    for path in back:
        path.unlink()
    said, report = read(run, *sheets, *again(*more))
    assert report["consensus"]["open"] > 0
    assert [problem for problem in report["problems"] if problem["kind"] == "double submission"] == []
    third = sorted(Path("annotated.third").iterdir())
    given = {row["task"]: path.stem for path in third for row in sheet_rows(path)}
    assert given.keys() == tasks
    had = {(row["task"], sheet.stem) for sheet in sheets for row in sheet_rows(sheet)}
    assert not [task for task, name in given.items() if (task, name) in had]
    assert "a third annotator marks these, and the majority decides" in said
    assert not list(Path("annotated.again").iterdir())

    deciding = [fill(path, Path(f"{path.stem}-3.csv")) for path in third]
    before = report
    said, report = read(run, *sheets, *again(*more, *deciding))
    # Third annotators mark only what others differ on, which says nothing of how far they agree.
    assert (report["markers"], report["agreement"]["pairs"]) == (before["markers"], before["agreement"]["pairs"])
    assert [entry["agreeing"] for entry in report["agreement"]["annotators"].values()] == [
        entry["agreeing"] for entry in before["agreement"]["annotators"].values()
    ]
    assert (report["consensus"]["open"], report["consensus"]["majority"] > 0) == (0, True)
    review = Path("annotated.review1.csv")
    assert len(sheet_rows(review)) == 3  # of ten tasks

    seen = fill(review, Path("seen.csv"))
    said, report = read(run, *sheets, *again(*more, *deciding), "--review", seen)
    # What one annotator alone had the wrong way round comes out here, and the reviewer's marks count.
    [first] = report["review"]
    assert (first["tasks"], first["of"]) == (3, 9)
    assert 0 < first["count"] < 9
    assert "Reviewer 1 marked 3 tasks and agrees on 66.7%" in said
    right = {(a, b): mark_of(texts[a], texts[b]) for texts in answers_by_id() for a in texts for b in texts}
    reviewed = [row["task"] for row in sheet_rows(review)]
    shown = {row["task"]: row["responses"] for row in read_rows(Path("tasks/tasks.jsonl"))}
    counted = {tuple(mark[:2]): mark[2] for row in read_rows(Path("annotated.jsonl")) for mark in row["annotations"]}
    for pair in (pair for task in reviewed for pair in combinations(shown[task], 2)):
        assert pair not in counted or counted[pair] == right[pair]


def test_a_second_reviewer_sees_what_the_first_left(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("all.toml").write_text("[tasks]\nreview_share = [1.0, 1.0]\n", encoding="utf-8")
    sheets = filled(run, tmp_path, ["open", "human"], 0.4, "--recipe", "all.toml")
    said, report = read(run, *sheets)
    assert "Nothing is open: reviewer 1 marks 10 tasks in annotated.review1.csv (--review)." in said
    assert report["review"] == []
    unfilled = ["--review", Path("annotated.review1.csv"), "--tasks", "tasks", "--out", "annotated.jsonl"]
    assert run("annotations", *sheets, *unfilled) == (
        2,
        "Error: The reviewer's sheet annotated.review1.csv has no marks; fill it in, or leave out `--review`.\n",
    )
    settled = report["consensus"]
    first = fill(Path("annotated.review1.csv"), Path("first.csv"), opposite)
    said, _ = read(run, *sheets, "--review", first)
    assert "Nothing is open: reviewer 2 marks 10 tasks in annotated.review2.csv (--review)." in said
    second = fill(Path("annotated.review2.csv"), Path("second.csv"))
    reviews = ["--review", first, "--review", second]
    said, report = read(run, *sheets, *reviews)
    assert report["consensus"] == settled  # a review decides nothing that was open
    # The second is right everywhere, and held against the first, not against the annotators.
    assert report["review"][1] == report["review"][0]
    assert report["review"][1]["count"] < report["review"][1]["of"] == 30
    assert "Reviewer 2 marked 10 tasks and agrees on" in said
    assert "Nothing is open" not in said
    right = {(a, b): mark_of(texts[a], texts[b]) for texts in answers_by_id() for a in texts for b in texts}
    for one, other, mark in (mark for row in read_rows(Path("annotated.jsonl")) for mark in row["annotations"]):
        assert mark == right[one, other]
    words = [*sheets, *reviews, "--review", first]
    assert run("annotations", *words, "--tasks", "tasks", "--out", "annotated.jsonl") == (
        2,
        "Error: `--review` has 3 files for 2 stages of review (`tasks.review_share`); pass one file per stage.\n",
    )


def test_each_sheet_of_a_later_round_has_an_option_of_its_own(run: Run, sheets: list[Path]) -> None:
    read(run, *sheets)
    more = [fill(path, Path(f"{path.stem}-2.csv")) for path in sorted(Path("annotated.again").iterdir())]
    status, said = run("annotations", *sheets, "--again", *more, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert (status, said.count(str(more[1]))) == (2, 1)
    assert "put `--again` before each file of a later round" in said


def marks(*given: tuple[str, str, str, str]) -> pl.DataFrame:
    """Marks by task, annotator, second response and mark."""
    return pl.DataFrame(
        [("p", task, who, "a", other, mark) for task, who, other, mark in given], schema=MARKS, orient="row"
    )


def test_ninety_in_a_hundred_is_enough() -> None:
    nine = [("t", who, f"r{place}", "1") for place in range(9) for who in ("x", "y")]
    enough = [*nine, ("t", "x", "r9", "1"), ("t", "y", "r9", "2")]
    [pair] = pair_agreement(marks(*enough), 0.9)
    assert (pair["annotators"], pair["agreeing"]["count"], pair["agreeing"]["of"]) == (["x", "y"], 9, 10)
    assert (pair["enough"], pair["tasks"]) == (True, ["t"])
    [less] = pair_agreement(marks(*enough[2:]), 0.9)
    assert not less["enough"]
    xyz, both = {"x", "y", "z"}, [("t", "x"), ("t", "y")]
    assert next_annotators([less], marks(), marks(*enough), xyz, set()) == (both, [])
    assert next_annotators([less], marks(), marks(*enough), xyz, {"t"}) == ([], [])
    assert next_annotators([less], marks(*enough), marks(*enough), xyz, set()) == ([], [("t", "z")])
    assert next_annotators([less], marks(*enough), marks(*enough), {"x", "y"}, set()) == ([], [])


def consensus(run: Run, *files: Path) -> tuple[str, dict[str, Any]]:
    """What the command said, and the report's consensus."""
    said, report = read(run, *files)
    return said, report["consensus"]


def judgements() -> int:
    return sum(len(row["annotations"]) for row in read_rows(Path("annotated.jsonl")))


def test_what_annotators_differ_on_is_discussed_and_then_counts(run: Run, doubled: list[Path]) -> None:
    recipe = Path("tasks/provenance/recipe.toml")
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("least_agreement = 0.9", "least_agreement = 0.0"), encoding="utf-8")
    said, first = consensus(run, *doubled)
    assert first["double_marked"] == 18
    assert first["open"] == first["differed"] == 18 - first["agreed"]["count"] > 0
    assert first["discussion"] == 0
    assert f"and {first['open']} are open (their marks are left out)." in said
    assert judgements() == 90 - first["open"]
    discuss = Path("annotated.discuss.csv")
    assert str(discuss) in said
    open_ = sheet_rows(discuss)
    assert {row["annotator"] for row in open_} == {"consensus"}
    assert len({row["task"] for row in open_}) == len(open_) <= first["open"]
    # Read again without what was filled in, the sheet would be lost.
    fill(discuss, discuss)
    before = discuss.read_bytes()
    status, said = run("annotations", *doubled, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert (status, said) == (
        2,
        "Error: annotated.discuss.csv has been filled in; read it with the other files, or move it away.\n",
    )
    said, second = consensus(run, *doubled, discuss)
    assert discuss.read_bytes() == before
    assert second | {"discussion": 0, "open": second["differed"]} == first
    assert (second["open"], judgements()) == (0, 90)
    assert "have the annotators fill in" not in said


def test_those_who_agree_when_they_mark_again_need_no_third(run: Run, sheets: list[Path]) -> None:
    read(run, *sheets)
    more = [fill(path, Path(f"{path.stem}-2.csv")) for path in sorted(Path("annotated.again").iterdir())]
    _, report = read(run, *sheets, *again(*more))
    assert report["consensus"]["open"] == 0
    assert all(pair["enough"] for pair in report["markers"])
    assert not Path("annotated.third").exists()


def test_sheets_that_went_back_are_not_written_over(run: Run, sheets: list[Path]) -> None:
    read(run, *sheets)
    [path, *_] = sorted(Path("annotated.again").iterdir())
    fill(path, path)
    before = path.read_bytes()
    status, said = run("annotations", *sheets, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert (status, said) == (
        2,
        f"Error: {path} has been filled in; read it with the other files, or move it away.\n",
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("key", "value", "fault"), [("responses", [None], "a prompt or response lacks `id`"), ("input", ["x"], "")]
)
def test_prompts_that_are_not_those_of_tasks_are_refused(
    run: Run, doubled: list[Path], key: str, value: object, fault: str
) -> None:
    prompts = Path("tasks/prompts.jsonl")
    first, *others = prompts.read_text(encoding="utf-8").splitlines()
    changed = json.dumps(json.loads(first) | {key: value}, ensure_ascii=False)
    prompts.write_text("\n".join([changed, *others]), encoding="utf-8")
    status, said = run("annotations", *doubled, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert status == 2
    assert said.startswith(f"Error: tasks/prompts.jsonl is not a file of `build-chinese tasks` ({fault}")
    assert said.endswith("); make the tasks again.\n")
