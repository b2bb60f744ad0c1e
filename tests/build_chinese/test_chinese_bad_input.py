"""Bad input: exit status 2, one sentence that says what is wrong and what to do, and nothing lost or half-written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import serve
from chinese_project import (
    FIVE,
    TASKS,
    Row,
    annotated,
    fill,
    judge,
    prompt,
    read_rows,
    unlabeled,
    write_prompts,
    write_rows,
)
from releases import files_of

Run = Callable[..., tuple[int, str]]
Refused = Callable[..., None]
RESOLVE: list[object] = ["resolve", "annotated.jsonl", "--out", "ranked.jsonl"]
PREFERENCE: list[object] = ["preference", "--annotated", "annotated.jsonl", "--prompts", "more.jsonl"]
PREFERENCE += ["--taxonomy", "taxonomy.toml", "--judge", "gpt", "--api-key-env", "JUDGE_KEY"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with prompts, responses, categories, annotations and prompts to vote on; where commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "sk-planted")
    write_prompts(tmp_path, ["open", "human", "preference"])
    write_rows(tmp_path / "annotated.jsonl", [annotated(number) for number in range(3)])
    write_rows(tmp_path / "more.jsonl", [unlabeled(number) for number in range(10, 12)])
    (tmp_path / "ranked.jsonl").write_text("of before\n", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.fixture
def refused(run: Run, project: Path) -> Refused:
    """A command fails with this sentence and nothing else, and leaves everything as it was."""

    def check(words: list[object], sentence: str) -> None:
        before = files_of(project)
        status, said = run(*words)
        assert said == f"Error: {sentence}\n"
        assert status == 2
        assert files_of(project) == before

    return check


def changed(number: int, **changes: Any) -> Row:
    return annotated(number) | changes


def test_where_every_prompt_is_dropped_it_is_said_why(project: Path, refused: Refused) -> None:
    equal = [[first, second, "s"] for first, second, _ in annotated(1)["annotations"]]
    alone = changed(2, responses=annotated(2)["responses"][:1], annotations=[])
    write_rows(project / "annotated.jsonl", [changed(1, annotations=equal), alone])
    sentence = "1 dropped (all responses became equal), 1 dropped (fewer than two responses)"
    refused(RESOLVE, f"No prompt of annotated.jsonl is left: {sentence}.")


def test_a_build_that_nothing_is_left_of_is_refused(run: Run, project: Path) -> None:
    write_rows(project / "annotated.jsonl", [changed(2, responses=annotated(2)["responses"][:1], annotations=[])])
    status, said = run("preference", "--annotated", "annotated.jsonl", "--out", "out")
    sentence = "No prompt is left: every prompt was dropped, or there were none."
    assert (status, said) == (2, f"Error: {sentence}\n")
    assert not (project / "out").exists()


def test_a_human_part_that_is_too_small_is_told_before_anything_is_asked(
    project: Path, refused: Refused, tmp_path: Path
) -> None:
    (project / "base").mkdir()
    (project / "base" / "config.json").write_text("{}", encoding="utf-8")
    with serve(judge) as server:
        refused(
            [*PREFERENCE, "--base-url", server.base_url, "--reward-base", "base", "--out", "out"],
            "The human part has 30 pairs of 3 prompts; training a reward model needs 50 (`reward.least_pairs`).",
        )
        assert server.requests == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["resolve", "annotated.jsonl", "--out", "annotated.jsonl"],
            "annotated.jsonl is an input of this command and would be overwritten; choose another file.",
        ),
        (
            ["tasks", "--prompts", "prompts.jsonl", "--annotator", "an"],
            "The prompts have no responses; set `--responses` or `--writer`.",
        ),
        (
            [*PREFERENCE, "--reward-base", "none"],
            "The base model's folder none does not exist; download the model, for example with "
            "`hf download ORG/NAME --local-dir FOLDER`.",
        ),
    ],
)
def test_commands_that_cannot_be_followed(refused: Refused, words: list[object], sentence: str) -> None:
    refused(words, sentence)


@pytest.mark.parametrize(
    ("category", "sentence"),
    [
        ("天文", "taxonomy.toml has no category '天文'; it has 地理, 改写."),
        (
            ["地理", "海洋"],
            "The prompt n1 has the category 地理 / 海洋, but 地理 in taxonomy.toml has no sub-category '海洋'; it has "
            "山川.",
        ),
        ([], "prompts.jsonl, row 2: `category` is empty; name a main category."),
    ],
)
def test_categories_that_are_unknown_or_empty(project: Path, refused: Refused, category: Any, sentence: str) -> None:
    write_rows(project / "prompts.jsonl", [prompt(0), prompt(1) | {"category": category}, prompt(2)])
    refused([*TASKS, "--out", "tasks"], sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompt": "n9"}, "responses.jsonl, row 16: the prompt 'n9' of response n0-a does not exist."),
        ({}, "responses.jsonl, row 16: the response n0-a of the prompt n0 is repeated."),
        ({"content": None}, "responses.jsonl, row 16: a response needs a `prompt`, an `id` and a `content`."),
    ],
)
def test_responses_that_belong_to_no_prompt(project: Path, refused: Refused, changes: Row, sentence: str) -> None:
    path = project / "responses.jsonl"
    given = read_rows(path)
    write_rows(path, [*given, given[0] | changes])
    refused([*TASKS, "--out", "tasks"], sentence)


def test_prompts_with_an_id_twice(project: Path, refused: Refused) -> None:
    write_rows(project / "prompts.jsonl", [prompt(0), prompt(1), prompt(1)])
    refused([*TASKS, "--out", "tasks"], "prompts.jsonl has the id n1 more than once; keep one of them.")


def test_prompts_of_one_input_are_refused_before_anybody_annotates_them(project: Path, refused: Refused) -> None:
    write_rows(project / "prompts.jsonl", [prompt(0), prompt(1), prompt(2) | {"input": prompt(1)["input"]}])
    sentence = "prompts.jsonl: the prompts n1 and n2 have the same input; keep one of them."
    refused([*TASKS, "--out", "tasks"], sentence)


def test_a_prompt_in_both_parts_is_refused_before_anything_is_asked(project: Path, refused: Refused) -> None:
    write_rows(project / "more.jsonl", [unlabeled(0), unlabeled(10)])
    with serve(judge) as server:
        refused(
            [*PREFERENCE, "--no-distant", "--base-url", server.base_url, "--out", "out"],
            "The prompt n0 is to be voted on and is also in the human part; remove it from one of the two.",
        )
        assert server.requests == []


def test_annotations_of_strangers_leave_the_file_that_was_there(run: Run, project: Path, refused: Refused) -> None:
    assert run(*TASKS, "--overlap", 0, "--out", "tasks")[0] == 0
    sheets: list[object] = [fill(project / f"tasks/sheets/{name}.csv", project / f"{name}.csv") for name in FIVE]
    path = project / "an.csv"
    words: list[object] = ["annotations", *sheets, "--tasks", "tasks", "--out", "annotated.jsonl"]
    text = path.read_text(encoding="utf-8-sig")
    path.write_text(text.replace(",an,", ",zhao,"), encoding="utf-8")
    said = "there is no annotator 'zhao'; map the account to an annotator, or fix the name"
    refused(words, f"{path}, row 2: {said}.")
    path.write_text(text.replace("n0-t", "n7-t"), encoding="utf-8")
    number, task = text[: text.index("n0-t")].count("\n") + 1, text.partition("n0-t")[2][0]
    said = f"there is no task 'n7-t{task}'; give the sheets of this study, whose tasks are others"
    refused(words, f"{path}, row {number}: {said}.")
    path.write_text(text, encoding="utf-8")
    assert run(*words)[0] == 0
